/** Only a difference in meaning is a conflict. Case B11 and a row that is tampered with. */
import { createHash } from "node:crypto";

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

function seedFingerprint(amount: number, currency: string, intentId: string): string {
  const text = `{"amount": ${String(amount)}, "currency": "${currency}", "intent_id": "${intentId}"}`;
  return createHash("sha256").update(text).digest("hex");
}

test("default: one key, two amounts (B11)", async () => {
  await world.intent({ id: "L1", key: "k2", amount: 1000, charge: "ch_1" });
  await world.intent({ id: "L2", key: "k2", amount: 1900, state: "failed_terminal" });
  await world.charge({ id: "ch_1" });
  expect(await world.judge()).toMatchObject([
    { code: "fingerprint_conflict", severity: "critical", basis: "key", intents: ["L1", "L2"] },
  ]);
});

test("behavior: one key with another hash and the same meaning is nothing (B11)", async () => {
  await world.intent({ id: "L1", key: "k1", fingerprint: "F1", charge: "ch_1" });
  await world.intent({ id: "L2", key: "k1", fingerprint: "F2", state: "failed_terminal" });
  await world.charge({ id: "ch_1" });
  expect(await world.judge()).toEqual([]);
});

test.each([
  ["currency", { currency: "eur" }],
  ["payee", { payee: "acct_2" }],
])("behavior: one key, another %s", async (_what, second) => {
  await world.intent({ id: "L1", key: "k2", payee: "acct_1", state: "failed_terminal" });
  await world.intent({ id: "L2", key: "k2", payee: "acct_1", state: "failed_terminal", ...second });
  expect(await world.codes()).toEqual(["fingerprint_conflict critical"]);
});

test("behavior: one payment identifier, two amounts", async () => {
  await world.intent({ id: "L1", paymentId: "p-1", amount: 10, state: "failed_terminal" });
  await world.intent({ id: "L2", paymentId: "p-1", amount: 20, state: "failed_terminal" });
  expect(await world.judge()).toMatchObject([{ basis: "payment_id" }]);
});

test("behavior: an amount that changed after it was recorded", async () => {
  await world.intent({ id: "L1", amount: 500, charge: "ch_1" });
  await world.charge({ id: "ch_1", amount: 500 });
  expect(await world.judge()).toEqual([]);
  await world.intent({ id: "L1", amount: 999, charge: "ch_1" });
  const findings = await world.judge();
  expect(findings.map((finding) => finding.code).sort()).toEqual([
    "amount_mismatch",
    "fingerprint_conflict",
  ]);
});

test("behavior: a stored fingerprint that fits the charge and not the row", async () => {
  const fingerprint = seedFingerprint(500, "usd", "inv-3");
  await world.intent({ id: "inv-3", amount: 999, fingerprint, charge: "ch_1" });
  await world.charge({ id: "ch_1", amount: 500 });
  const findings = await world.judge();
  const conflict = findings.find((finding) => finding.code === "fingerprint_conflict");
  expect(conflict?.evidence).toMatchObject({ fitsAmount: "500", amount: "999" });
});

test("behavior: an unknown way of hashing is no conflict until one row can be reproduced", async () => {
  const unknown = "a".repeat(64);
  await world.intent({ id: "L1", fingerprint: unknown, charge: "ch_1" });
  await world.charge({ id: "ch_1" });
  expect(await world.judge()).toEqual([]);
  const known = { id: "L2", charge: "ch_2", fingerprintFit: "python" };
  await world.intent({ ...known, fingerprint: seedFingerprint(1000, "usd", "L2") });
  await world.charge({ id: "ch_2" });
  await world.intent({ id: "L1", fingerprint: unknown, charge: "ch_1" });
  const findings = await world.judge();
  expect(findings).toMatchObject([{ basis: "fingerprint", intents: ["L1"] }]);
});
