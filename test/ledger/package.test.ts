/** Goal: what other projects import stays where it is. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

import * as ledger from "../../src/ledger/ledger.ts";

interface Manifest {
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

it("default: the package exports what the build makes of the entry", () => {
  const url = new URL("../../package.json", import.meta.url);
  const { exports } = JSON.parse(readFileSync(url, "utf8")) as Manifest;
  expect(exports["./ledger"]).toEqual({
    types: "./dist/src/ledger/ledger.d.ts",
    default: "./dist/src/ledger/ledger.js",
  });
});

it("behavior: the names are these", () => {
  expect(Object.keys(ledger).sort()).toEqual([
    ...["LIMITS", "LedgerError", "executePayment", "fingerprintOf", "keyProtection"],
    ...["keyReusable", "ledgerTableSql", "mintIntent", "nextStep", "payX402", "readIntent"],
  ]);
});
