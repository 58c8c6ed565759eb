// What a child needs to find its programs and its home; settings are handed over one by one.
const INHERITED = ["PATH", "HOME", "TMPDIR", "TEMP", "SystemRoot", "LANG", "LC_ALL"] as const;

/** The part of this process's environment that a child process needs, without any setting. */
export function inheritedEnvironment(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    INHERITED.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
