// Goal: the last line of a run never looks better than the run was.
// Method: runs of vitest over small files that fail in every way a file can fail.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { closingLine } from "../support/closing-line.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

let folder: string;
beforeAll(async () => {
  // Where the files find vitest and no other tool finds the files.
  folder = await mkdtemp(path.join(ROOT, "node_modules", ".closing-line-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** The last line of a run over one test file, and whether the run succeeded. */
async function runOver(name: string, text: string): Promise<{ line: string; ok: boolean }> {
  await writeFile(
    path.join(folder, `${name}.test.ts`),
    `import { test, beforeAll } from "vitest";\n${text}`,
  );
  await writeFile(
    path.join(folder, `${name}.config.mjs`),
    `export default { test: {
       root: ${JSON.stringify(folder)}, include: ["${name}.test.ts"], exclude: [],
       reporters: [${JSON.stringify(path.join(ROOT, "test/support/closing-line.ts"))}],
     } };`,
  );
  const program = path.join(ROOT, "node_modules/vitest/vitest.mjs");
  const config = path.join(folder, `${name}.config.mjs`);
  return new Promise((resolve) => {
    execFile(process.execPath, [program, "run", "--config", config], (error, stdout) => {
      resolve({ line: stdout.trimEnd().split("\n").at(-1) ?? "", ok: error === null });
    });
  });
}

describe("closing line", () => {
  test("default", () => {
    expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
    expect(closingLine({ passed: 3, failed: 1, skipped: 2 })).toBe("3 passed, 1 failed, 2 skipped");
  });

  test.each([
    ["green", `test("a", () => undefined);`, "1 passed, 0 failed", true],
    ["red", `test("a", () => { throw new Error("planted"); });`, "0 passed, 1 failed", false],
    ["import", `import "./nowhere.ts"; test("a", () => undefined);`, "0 passed, 1 failed", false],
    [
      "hook",
      `beforeAll(() => { throw new Error("planted"); }); test("a", () => undefined);`,
      "0 passed, 1 failed, 1 skipped",
      false,
    ],
    [
      "unhandled",
      `test("a", async () => {
         setTimeout(() => { throw new Error("planted"); }, 1);
         await new Promise((resolve) => setTimeout(resolve, 50));
       });`,
      "1 passed, 1 failed",
      false,
    ],
  ])("behavior: %s", async (name, text, line, ok) => {
    expect(await runOver(name, text)).toEqual({ line, ok });
  });
});
