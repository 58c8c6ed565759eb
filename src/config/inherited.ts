// What a child process needs of ours to find its programs, its home and its temporary folder; no
// setting of tallyd is among them, so a child sees exactly those that it is given.
const NAMES = [
  "PATH",
  "HOME",
  "USER",
  "TMPDIR",
  "LANG",
  "TZ",
  "NODE_OPTIONS",
  "NODE_EXTRA_CA_CERTS",
];

/** The part of this process's environment that child processes get besides their settings. */
export function inheritedEnvironment(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Folder of the embedded PostgreSQL, for a command that needs no other setting. */
export function dataDirSetting(): string {
  return process.env["TALLYD_DATA_DIR"] ?? "./.tallyd";
}
