/** Refunds have a life of their own. Cases B29, B30. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const DAY = 86_400_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: a refund that failed, until it is repeated (B29 a)", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1" });
  await world.refund({ id: "re_1", charge: "ch_1", amount: 1000 });
  expect(await world.judge()).toEqual([]);
  await world.refund({ id: "re_1", charge: "ch_1", amount: 1000, status: "failed" });
  expect(await world.judge()).toMatchObject([
    { code: "refund_drift", severity: "critical", basis: "refund_failed", amountAtRisk: 1000n },
  ]);
  await world.refund({ id: "re_2", charge: "ch_1", amount: 1000 });
  expect(await world.judge()).toEqual([]);
});

test("behavior: cumulative totals misread by the local table (B29 b)", async () => {
  const refund = { kind: "refund", state: "recorded", reference: "o-1" };
  await world.intent({ id: "L1", charge: "ch_3", amount: 5000, reference: "o-1" });
  await world.intent({ id: "R1", amount: 1200, charge: "re_a", ...refund });
  await world.intent({ id: "R2", amount: 1900, charge: "re_b", ...refund });
  await world.charge({ id: "ch_3", amount: 5000, amountRefunded: 1900, reference: "o-1" });
  await world.refund({ id: "re_a", charge: "ch_3", amount: 1200 });
  await world.refund({ id: "re_b", charge: "ch_3", amount: 700 });
  expect(await world.judge()).toMatchObject([
    { code: "refund_drift", basis: "local_total", evidence: { local: "3100", provider: "1900" } },
  ]);
});

test("behavior: a refund that stays pending is a remark and counts for nothing (B29 c)", async () => {
  await world.intent({ id: "L1", charge: "ch_4", amount: 700 });
  await world.charge({ id: "ch_4", amount: 700, amountRefunded: 700 });
  const refund = { id: "re_c", charge: "ch_4", amount: 700, status: "pending" };
  await world.refund({ ...refund, ageMs: 5 * DAY });
  expect(await world.codes()).toEqual(["refund_drift info"]);
});

test("behavior: refunded and lost in a dispute is paid back twice (B30)", async () => {
  await world.intent({ id: "L1", charge: "ch_6", amount: 5000 });
  await world.charge({ id: "ch_6", amount: 5000, amountRefunded: 5000 });
  await world.refund({ id: "re_6", charge: "ch_6", amount: 5000 });
  await world.dispute({ id: "du_3", charge: "ch_6", amount: 5000, status: "lost" });
  const findings = await world.judge();
  const drift = findings.find((finding) => finding.code === "refund_drift");
  expect(drift).toMatchObject({ basis: "over_returned", amountAtRisk: 5000n });
});

test("behavior: the released rest of a partial capture is no refund", async () => {
  await world.intent({ id: "L1", charge: "ch_1", amount: 600 });
  await world.charge({ id: "ch_1", amount: 1000, amountCaptured: 600, amountRefunded: 400 });
  expect(await world.judge()).toEqual([]);
});

test("behavior: refunds made in the dashboard are facts", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1", amountRefunded: 300 });
  await world.refund({ id: "re_1", charge: "ch_1", amount: 300 });
  expect(await world.judge()).toEqual([]);
});
