// Goal: one command and the continuous integration run the same checks.
// Method: compares the script `check` of package.json with the file that a machine runs.
import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

function read(name: string): string {
  return readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), "utf8");
}

/** The names of the checks in `npm run check`, in order, the tests last. */
function checksOf(packageJson: string): readonly string[] {
  const { scripts } = JSON.parse(packageJson) as { scripts: Record<string, string> };
  const steps = (scripts["check"] ?? "").split(" && ");
  return steps.map((step) => step.replace(/^npm (run )?/, ""));
}

describe("continuous integration", () => {
  test("default", () => {
    const checks = checksOf(read("package.json"));
    expect(checks.at(-1)).toBe("test");
    const listed = /^for check in (.*); do$/m.exec(read(".ci/run"))?.[1];
    expect(listed?.split(" ")).toEqual(checks.slice(0, -1));
  });

  test("behavior: it can be run, on any machine", () => {
    const file = fileURLToPath(new URL("../../.ci/run", import.meta.url));
    expect(statSync(file).mode & 0o111).toBe(0o111);
    expect(read(".ci/run")).not.toMatch(/(^|[\s"'=])\/(home|root|usr|opt|tmp|var)\//m);
  });

  test("behavior: every version is exact", () => {
    const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<
      string,
      Record<string, string>
    >;
    const all = Object.entries({ ...dependencies, ...devDependencies });
    expect(all.length).toBeGreaterThan(0);
    expect(all.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  });
});
