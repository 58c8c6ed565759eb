/** Row and charge disagree about the money. Cases B33, B35. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: another amount, with its difference", async () => {
  await world.intent({ id: "L1", amount: 1000, charge: "ch_1" });
  await world.charge({ id: "ch_1", amount: 1200 });
  expect(await world.judge()).toMatchObject([
    {
      code: "amount_mismatch",
      severity: "critical",
      basis: "amount",
      intents: ["L1"],
      charges: ["ch_1"],
      amountAtRisk: 200n,
      evidence: { difference: "200" },
    },
  ]);
});

test.each([10, 100, 1000])("behavior: the factor %i is named", async (factor) => {
  await world.intent({ id: "L1", amount: 1000, charge: "ch_1" });
  await world.charge({ id: "ch_1", amount: 1000 * factor });
  const [finding] = await world.judge();
  expect(finding?.evidence["factor"]).toBe(String(factor));
  expect(finding?.advice).toContain("major and minor units");
});

test("behavior: beyond 2^53 one unit is still seen (B33)", async () => {
  await world.intent({ id: "L3", amount: 9007199254740993n, charge: "ch_1" });
  await world.charge({ id: "ch_1", amount: 9007199254740993n });
  expect(await world.judge()).toEqual([]);
  await world.intent({ id: "L4", amount: 9007199254740992n, charge: "ch_2" });
  await world.charge({ id: "ch_2", amount: 9007199254740993n });
  expect(await world.judge()).toMatchObject([{ intents: ["L4"], amountAtRisk: 1n }]);
});

test("behavior: another currency or payee", async () => {
  await world.intent({ id: "L1", charge: "ch_1", currency: "eur" });
  await world.charge({ id: "ch_1", currency: "usd" });
  await world.intent({ id: "L2", charge: "ch_2", payee: "acct_1" });
  await world.charge({ id: "ch_2", payee: "acct_2" });
  const findings = await world.judge();
  expect(findings.map((finding) => finding.basis).sort()).toEqual(["currency", "payee"]);
});

test("behavior: a capture below the amount is a remark", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1", amountCaptured: 600 });
  expect(await world.codes()).toEqual(["amount_mismatch info"]);
});

test("behavior: a refund does not change what was taken", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1", amountRefunded: 400 });
  expect(await world.judge()).toEqual([]);
});
