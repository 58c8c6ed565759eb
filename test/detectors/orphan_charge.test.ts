/** A successful charge that no row meant. Cases B02, B05, B08, B20, B33. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const SECOND = 1_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: a charge that names an intent which is not there", async () => {
  await world.charge({ id: "ch_1", mark: "pay-1", keys: ["k1"], reference: "o-1" });
  const findings = await world.judge();
  expect(findings).toMatchObject([
    {
      code: "orphan_charge",
      severity: "critical",
      intents: [],
      charges: ["ch_1"],
      amountAtRisk: 1000n,
      look: {
        source: "local",
        chargeIds: ["ch_1", "pi_1"],
        keys: ["k1"],
        intentIds: ["pay-1"],
        references: ["o-1"],
        nonces: [],
      },
    },
  ]);
});

test("behavior: nothing is said inside the grace period", async () => {
  await world.charge({ id: "ch_1", mark: "pay-1", ageMs: 119 * SECOND });
  expect(await world.judge()).toEqual([]);
  expect(await world.codes(2 * SECOND)).toEqual(["orphan_charge critical"]);
});

test("behavior: a row that comes late ends it", async () => {
  await world.charge({ id: "ch_1", mark: "pay-1" });
  expect(await world.codes()).toEqual(["orphan_charge critical"]);
  await world.intent({ id: "pay-1", state: "recorded", charge: "ch_1" });
  expect(await world.judge()).toEqual([]);
});

test.each([
  ["no mark of ours", { mark: null }, ["orphan_charge warning"]],
  ["undecidable ownership", { owned: "unknown" as const }, ["orphan_charge info"]],
  ["somebody else's", { owned: "no" as const }, []],
  ["refunded in full", { amountRefunded: 1000 }, []],
  ["not captured", { captured: false }, []],
  ["failed", { status: "failed" as const }, []],
  ["pending", { status: "pending" as const }, []],
  ["the mirror of a destination charge", { sourceTransfer: "tr_1" }, []],
])("behavior: %s", async (_what, charge, expected) => {
  await world.charge({ id: "ch_1", mark: "pay-1", ...charge });
  expect(await world.codes()).toEqual(expected);
});

test("behavior: an invoice's payment is told unless invoices are ignored", async () => {
  await world.charge({ id: "ch_1", invoice: "in_1" });
  expect(await world.codes()).toEqual(["orphan_charge warning"]);
  const { stripe } = world.settings;
  await world.reset({ stripe: { ...stripe, subscriptions: "ignore" } });
  await world.charge({ id: "ch_1", invoice: "in_1" });
  expect(await world.judge()).toEqual([]);
});

test.each([
  ["the charge id", { charge: "ch_1" }, {}],
  ["the payment intent's id", { charge: "pi_1" }, {}],
  ["the key", { key: "k9" }, { keys: ["k9"] }],
  ["the metadata", { id: "pay-9" }, { mark: "pay-9" }],
  ["the reference of a row without a charge", { reference: "o-9" }, { reference: "o-9" }],
])("behavior: a row is found by %s", async (_what, intent, charge) => {
  await world.intent({ id: "L1", ...intent });
  await world.charge({ id: "ch_1", ...charge });
  const findings = await world.judge();
  expect(findings.filter((finding) => finding.code === "orphan_charge")).toEqual([]);
});

test("behavior: a row of another account's scope owns nothing here (B20)", async () => {
  await world.intent({ id: "L1", charge: "ch_1", scope: "acct_C/test" });
  await world.charge({ id: "ch_1" });
  expect(await world.codes()).toEqual(["orphan_charge warning", "state_drift warning"]);
});
