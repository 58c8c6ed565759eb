/**
 * Charges of different operations that look alike: found only as probable, and never against
 * different references. Cases B03, B05.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: two rows, two keys, one customer, 35 seconds apart (B03)", async () => {
  await world.intent({ id: "L1", amount: 5000, key: "att-1", charge: "ch_1", fingerprint: "F" });
  await world.intent({ id: "L2", amount: 5000, key: "att-2", charge: "ch_2", fingerprint: "F" });
  await world.charge({ id: "ch_1", amount: 5000, customer: "cus_1", ageMs: HOUR });
  await world.charge({ id: "ch_2", amount: 5000, customer: "cus_1", ageMs: HOUR - 35 * SECOND });
  const findings = await world.judge();
  expect(new Set(findings.map((finding) => finding.subject)).size).toBe(1);
  expect(findings[0]).toMatchObject({
    code: "double_charge",
    severity: "warning",
    basis: "similar",
    intents: ["L1", "L2"],
    charges: ["ch_1", "ch_2"],
    amountAtRisk: 5000n,
  });
  expect(findings[0]?.evidence["gapSeconds"]).toBe(35);
});

test("behavior: equal fingerprints reach over hours, likeness only over minutes", async () => {
  for (const [id, age] of [
    ["1", 5 * HOUR],
    ["2", 2 * HOUR],
  ] as const) {
    await world.intent({ id: `L${id}`, charge: `ch_${id}`, fingerprint: "F" });
    await world.charge({ id: `ch_${id}`, customer: "cus_1", ageMs: age });
    await world.charge({ id: `ch_x${id}`, customer: "cus_2", amount: 77, ageMs: age });
  }
  const findings = await world.judge();
  const similar = findings.filter((finding) => finding.code === "double_charge");
  expect(similar.map((finding) => finding.charges)).toEqual([["ch_1", "ch_2"]]);
});

test.each([
  ["reference", { reference: "o-1" }, { reference: "o-2" }],
  ["customer", { customer: "cus_1" }, { customer: "cus_2" }],
  ["amount", { amount: 100 }, { amount: 101 }],
  ["currency", { currency: "usd" }, { currency: "eur" }],
  ["purpose", { purpose: "a" }, { purpose: "b" }],
  ["payee", { payee: "acct_1" }, { payee: "acct_2" }],
])("behavior: another %s is another purchase", async (_what, first, second) => {
  await world.intent({ id: "L1", charge: "ch_1", amount: 100 });
  await world.intent({ id: "L2", charge: "ch_2", amount: 100 });
  await world.charge({ id: "ch_1", customer: "cus_1", amount: 100, ...first });
  await world.charge({ id: "ch_2", customer: "cus_1", amount: 100, ...second });
  const findings = await world.judge();
  expect(findings.filter((finding) => finding.code === "double_charge")).toEqual([]);
});

test("behavior: a burst without rows is one finding and no orphans (B05)", async () => {
  for (let n = 0; n < 17; n += 1) {
    const id = `ch_${String(n).padStart(2, "0")}`;
    const ageMs = HOUR - (n * 60 * SECOND) / 16;
    await world.charge({ id, amount: 700, customer: "cus_4", purpose: "top-up", ageMs });
  }
  const findings = await world.judge();
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatchObject({
    code: "double_charge",
    severity: "critical",
    basis: "similar",
    intents: [],
    amountAtRisk: 11200n,
  });
  expect(findings[0]?.evidence).toMatchObject({ count: 17, gapSeconds: 60, withoutRows: 17 });
});

test("behavior: charges of nobody in particular are not compared", async () => {
  await world.charge({ id: "ch_1" });
  await world.charge({ id: "ch_2" });
  const findings = await world.judge();
  expect(findings.map((finding) => finding.code)).toEqual(["orphan_charge", "orphan_charge"]);
});

test("behavior: metered payees may repeat up to their amount", async () => {
  const { rules } = world.settings;
  const allowRepeats = [{ payee: "acct_1", maxAmount: 1000n }];
  await world.reset({ rules: { ...rules, allowRepeats } });
  await world.charge({ id: "ch_1", customer: "cus_1", payee: "acct_1", ageMs: HOUR });
  await world.charge({ id: "ch_2", customer: "cus_1", payee: "acct_1", ageMs: HOUR - MINUTE });
  await world.charge({ id: "ch_3", customer: "cus_1", payee: "acct_1", amount: 1001 });
  await world.charge({ id: "ch_4", customer: "cus_1", payee: "acct_1", amount: 1001 });
  const findings = await world.judge();
  const doubles = findings.filter((finding) => finding.code === "double_charge");
  expect(doubles.map((finding) => finding.charges)).toEqual([["ch_3", "ch_4"]]);
});
