/** Local state against provider truth. Cases B04, B07, B08, B23. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const SECOND = 1_000;
const DAY = 86_400_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: terminally failed, then charged by another attempt (B07)", async () => {
  await world.intent({ id: "L1", state: "failed_terminal", charge: "ch_a" });
  await world.charge({ id: "ch_a", pi: "pi_1", status: "failed" });
  await world.charge({ id: "ch_b", pi: "pi_1", mark: "L1" });
  const findings = await world.judge();
  expect(findings).toMatchObject([
    { code: "state_drift", severity: "critical", intents: ["L1"], charges: ["ch_b"] },
  ]);
  expect(findings[0]?.evidence).toMatchObject({ shouldBe: "recorded", charge: "ch_b" });
});

test("behavior: the advice is the refundable rest, and a hold is cancelled (B08)", async () => {
  await world.intent({ id: "L1", state: "failed_terminal", amount: 3000 });
  await world.charge({ id: "ch_1", mark: "L1", amount: 3000, amountRefunded: 500 });
  await world.intent({ id: "L2", state: "failed_terminal", amount: 3000 });
  await world.payment({ id: "pi_2", status: "requires_capture", mark: "L2", amount: 3000 });
  const findings = await world.judge();
  const adviceFor = (id: string): string =>
    findings.find((finding) => finding.intents.includes(id))?.advice ?? "";
  expect(adviceFor("L1")).toContain("2500 USD");
  expect(adviceFor("L2")).toContain("Cancel the payment intent");
});

test("behavior: a failed row whose money went back whole is settled", async () => {
  await world.intent({ id: "L1", state: "failed_terminal" });
  await world.charge({ id: "ch_1", mark: "L1", amountRefunded: 1000 });
  expect(await world.judge()).toEqual([]);
});

test("behavior: rows that the resolver writes are told only when it does not", async () => {
  const row = { id: "L1", state: "failed_retryable", reference: "don-3/Jul", key: "k1" };
  await world.intent(row);
  await world.charge({ id: "ch_1", reference: "don-3/Jul" });
  expect(await world.judge()).toEqual([]);
  await world.reset({ resolve: "suggest" });
  await world.intent(row);
  await world.charge({ id: "ch_1", reference: "don-3/Jul" });
  expect(await world.judge()).toMatchObject([{ code: "state_drift", charges: ["ch_1"] }]);
});

test("behavior: a refused write is told", async () => {
  await world.intent({ id: "L1", state: "reconciling" });
  await world.charge({ id: "ch_1", mark: "L1" });
  expect(await world.judge()).toEqual([]);
  await world.pool.query(
    `insert into tallyd.resolution (intent_id, decision, reason, from_state, outcome, proof,
       contract, decided_at)
     values ('L1', 'recorded', 'test', 'reconciling', 'refused', '{}', '{}', $1)`,
    [world.now],
  );
  expect(await world.codes()).toEqual(["state_drift critical"]);
});

test("behavior: recorded, but the provider cancelled it", async () => {
  await world.intent({ id: "L1", charge: "pi_1", ageMs: 100 * SECOND });
  await world.payment({ id: "pi_1", status: "canceled" });
  expect(await world.judge()).toEqual([]);
  expect(await world.codes(30 * SECOND)).toEqual(["state_drift warning"]);
});

test("behavior: recorded with an attempt that failed", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1", pi: null, status: "failed" });
  expect(await world.codes()).toEqual(["state_drift warning"]);
});

test("behavior: an asynchronous method may take its days", async () => {
  await world.intent({ id: "L1", charge: "pi_1" });
  await world.payment({ id: "pi_1", status: "processing", asynchronous: true });
  expect(await world.judge()).toEqual([]);
  expect(await world.codes(15 * DAY)).toEqual(["state_drift warning"]);
});

test("behavior: recorded and unknown to the mirror asks the provider first", async () => {
  await world.intent({ id: "L1", charge: "pi_404", ageMs: 100 * SECOND });
  expect(await world.judge()).toEqual([]);
  expect(await world.judge(30 * SECOND)).toMatchObject([
    {
      code: "state_drift",
      basis: "never_existed",
      look: { source: "stripe", scope: "platform/test", id: "pi_404" },
    },
  ]);
});

test("behavior: recorded and charged agree", async () => {
  await world.intent({ id: "L1", charge: "pi_1" });
  await world.charge({ id: "ch_1" });
  await world.payment({ id: "pi_1", status: "succeeded" });
  expect(await world.judge()).toEqual([]);
});
