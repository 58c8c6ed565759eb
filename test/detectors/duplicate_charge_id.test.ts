/** One charge on several rows: a defect of the table, not a second payment. Case B14. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: two rows, one charge, money moved once (B14)", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.intent({ id: "L2", charge: "ch_1" });
  await world.charge({ id: "ch_1", mark: "L1" });
  expect(await world.judge()).toMatchObject([
    {
      code: "duplicate_charge_id",
      severity: "critical",
      intents: ["L1", "L2"],
      charges: ["ch_1"],
      amountAtRisk: 0n,
    },
  ]);
});

test("behavior: the spelling does not matter", async () => {
  await world.intent({ id: "L1", charge: "pi_1" });
  await world.intent({ id: "L2", charge: "ch_1" });
  await world.charge({ id: "ch_1" });
  expect(await world.codes()).toEqual(["duplicate_charge_id critical"]);
});

test("behavior: found before the provider's webhook is there", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.intent({ id: "L2", charge: "ch_1" });
  const findings = await world.judge();
  expect(findings.map((finding) => finding.code)).toContain("duplicate_charge_id");
});

test("behavior: corrected rows end it", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.intent({ id: "L2", charge: "ch_1" });
  await world.charge({ id: "ch_1" });
  await world.charge({ id: "ch_2" });
  expect(await world.codes()).toContain("duplicate_charge_id critical");
  await world.intent({ id: "L2", charge: "ch_2" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: a capture or refund call names its charge rightly", async () => {
  await world.intent({ id: "L1", charge: "pi_1" });
  await world.intent({ id: "L2", charge: "pi_1", kind: "capture" });
  await world.intent({ id: "L3", charge: "pi_1", kind: "refund", state: "failed_terminal" });
  await world.charge({ id: "ch_1" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: equal ids in two scopes are two charges", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.intent({ id: "L2", charge: "ch_1", scope: "acct_C/test" });
  await world.charge({ id: "ch_1" });
  await world.charge({ id: "ch_1", scope: "acct_C/test" });
  expect(await world.judge()).toEqual([]);
});
