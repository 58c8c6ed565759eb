/**
 * Placing is independent of the order in which objects become known: any order and any splitting
 * into
 * batches ends in the same operations, the same owners and the same findings.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";

import { placeChanged } from "../../src/match/place.ts";
import { withTx } from "../../src/store/tx.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

type Arrival = (w: World) => Promise<void>;

// One of each family: own id, key, metadata, shared references, shared payment ids, strays.
const ARRIVALS: readonly Arrival[] = [
  (w) => w.intent({ id: "L1", charge: "pi_1", reference: "o-1" }),
  (w) => w.charge({ id: "ch_1", reference: "o-1" }),
  (w) => w.charge({ id: "ch_2", reference: "o-1", mark: "L1" }),
  (w) => w.charge({ id: "ch_3", reference: "o-1" }),
  (w) => w.intent({ id: "L2", key: "k2", paymentId: "p-1" }),
  (w) => w.intent({ id: "L3", key: "k3", paymentId: "p-1", reference: "o-3" }),
  (w) => w.charge({ id: "ch_4", keys: ["k2"] }),
  (w) => w.charge({ id: "ch_5", keys: ["k3"] }),
  (w) => w.intent({ id: "L4", state: "failed_retryable", reference: "o-4", key: null }),
  (w) => w.charge({ id: "ch_6", reference: "o-4" }),
  (w) => w.charge({ id: "ch_7", mark: "L9" }),
  (w) => w.charge({ id: "ch_8", keys: ["k8"] }),
  (w) => w.charge({ id: "ch_9", keys: ["k8"] }),
  (w) => w.payment({ id: "pi_4", status: "succeeded" }),
  // Order numbers that the provider's metadata alone knows.
  (w) => w.intent({ id: "L5", charge: "ch_a" }),
  (w) => w.intent({ id: "L6", charge: "ch_b" }),
  (w) => w.charge({ id: "ch_a", reference: "o-5" }),
  (w) => w.charge({ id: "ch_b", reference: "o-5" }),
  (w) => w.charge({ id: "ch_c", reference: "o-5" }),
];

async function placements(): Promise<unknown> {
  const intents = await world.pool.query(
    "select intent_id, operation_id from tallyd.intent_match order by intent_id",
  );
  const charges = await world.pool.query(
    `select charge_id, operation_id, intent_id, basis
       from tallyd.charge_match
      order by charge_id`,
  );
  const findings = await world.judge();
  const lines = findings.map((f) => [f.code, f.subject, f.intents.join(), f.charges.join()].join());
  return { intents: intents.rows, charges: charges.rows, findings: lines.sort() };
}

async function place(): Promise<void> {
  await withTx(world.pool, async (tx) => placeChanged(tx, world.settings.rules, world.now));
}

test("default: any order and any batches give the same operations", async () => {
  await world.reset();
  for (const arrive of ARRIVALS) await arrive(world);
  await place();
  const expected = await placements();
  const order = fc.shuffledSubarray([...ARRIVALS.keys()], { minLength: ARRIVALS.length });
  const cuts = fc.array(fc.boolean(), { minLength: ARRIVALS.length, maxLength: ARRIVALS.length });
  await fc.assert(
    fc.asyncProperty(order, cuts, async (indices, placeAfter) => {
      await world.reset();
      for (const [n, index] of indices.entries()) {
        await ARRIVALS[index]?.(world);
        if (placeAfter[n] === true) await place();
      }
      await place();
      expect(await placements()).toEqual(expected);
    }),
    { numRuns: 12 },
  );
});

test("behavior: what belongs where", async () => {
  await world.reset();
  for (const arrive of ARRIVALS) await arrive(world);
  await place();
  const charges = await world.pool.query<{ charge_id: string; owner: string; operation: string }>(
    `select charge_id, coalesce(intent_id, '-') as owner, operation_id as operation
       from tallyd.charge_match
      order by charge_id`,
  );
  expect(charges.rows.map((row) => [row.charge_id, row.owner, row.operation].join(" "))).toEqual([
    "ch_1 L1 ref:A:o-1",
    "ch_2 L1 ref:A:o-1",
    "ch_3 - ref:A:o-1",
    "ch_4 L2 ref:A:o-3",
    "ch_5 L3 ref:A:o-3",
    "ch_6 L4 ref:A:o-4",
    "ch_7 - intent:L9",
    "ch_8 - key:platform/test:k8",
    "ch_9 - key:platform/test:k8",
    "ch_a L5 ref:A:o-5",
    "ch_b L6 ref:A:o-5",
    "ch_c - ref:A:o-5",
  ]);
});

test("behavior: every touched operation is due", async () => {
  await world.reset();
  await world.charge({ id: "ch_1", mark: "L1" });
  await place();
  await world.pool.query("delete from tallyd.due");
  await world.intent({ id: "L1", reference: "o-1" });
  await place();
  const due = await world.pool.query<{ operation_id: string }>(
    "select distinct operation_id from tallyd.due order by operation_id",
  );
  expect(due.rows.map((row) => row.operation_id)).toEqual(["intent:L1", "ref:A:o-1"]);
});

test("behavior: a charge that names a row of its own waits for it before it joins an order", async () => {
  await world.reset();
  await world.intent({ id: "L1", charge: "ch_1", reference: "o-1" });
  await world.charge({ id: "ch_1", reference: "o-1", mark: "L1" });
  // Another tenant uses the same order number, and its row is not read yet.
  await world.charge({ id: "ch_2", reference: "o-1", mark: "L2", ageMs: 1_000 });
  expect(await world.judge()).toEqual([]);
  expect(await world.codes(300_000)).toEqual(["double_charge critical"]);
  await world.intent({ id: "L2", account: "south", charge: "ch_2", reference: "o-1" });
  expect(await world.judge(300_000)).toEqual([]);
});

test("behavior: a charge without such a name joins its order at once", async () => {
  await world.reset();
  await world.intent({ id: "L1", charge: "ch_1", reference: "o-1" });
  await world.charge({ id: "ch_1", reference: "o-1", mark: "L1" });
  await world.charge({ id: "ch_2", reference: "o-1", ageMs: 1_000 });
  expect(await world.codes()).toEqual(["double_charge critical"]);
});
