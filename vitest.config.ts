import path from "node:path";

import { defineConfig } from "vitest/config";

// Folders whose tests take data and return data: no database, no process state, so the files can
// share a worker. That is several times faster than a fresh worker for each.
const PURE = ["test/core/**/*.test.ts", "test/repo/**/*.test.ts"];
// Builds and packs the whole package: a check beside the build, and not of every `npm test`.
const PACKAGE = ["test/package/**/*.test.ts"];

export default defineConfig({
  // The examples import the package by its name, as its users do.
  resolve: { alias: { "tallyd/ledger": path.resolve("src/ledger/ledger.ts") } },
  test: {
    reporters: ["default", "./test/support/closing-line.ts"],
    // A database test waits for other files' copies of the template; a real hang is found anyway.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    // Two cores are the smallest machine that runs this; many tests wait, so further workers pay.
    maxWorkers: 4,
    projects: [
      {
        extends: true,
        test: { name: "pure", include: PURE, isolate: false },
      },
      { extends: true, test: { name: "package", include: PACKAGE } },
      {
        extends: true,
        test: {
          name: "database",
          include: ["test/**/*.test.ts"],
          exclude: [...PURE, ...PACKAGE],
          pool: "forks",
          // Short-lived objects of whole tests fit: the collector runs a fifth as often.
          execArgv: ["--max-semi-space-size=64"],
          // No module keeps state, so the files of a worker share what is imported: a tenth of the run.
          isolate: false,
          globalSetup: ["./test/support/global-setup.ts"],
        },
      },
    ],
  },
});
