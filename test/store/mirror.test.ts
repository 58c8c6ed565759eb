/**
 * Goal: the mirror's rows depend on the facts alone, and only real changes are marked.
 * Method: facts of the real reader against PostgreSQL; event sequences of the field cases in every
 * order and repetition (B07, B13, B29).
 */
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { ChargeFact, Fact } from "../../src/core/facts.ts";
import { applyFacts } from "../../src/store/mirror.ts";
import type { AppliedFacts } from "../../src/store/mirror.ts";
import { withTx } from "../../src/store/tx.ts";
import {
  SCOPE,
  at,
  charge,
  dispute,
  ofKind,
  paid,
  paymentIntent,
  read,
  refund,
} from "../sources/stripe/shapes.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb();
});
afterAll(async () => {
  await db.close();
});
beforeEach(async () => {
  await emptyTables(db.pool, [
    "tallyd.stripe_payment_intent",
    "tallyd.charge",
    "tallyd.refund",
    "tallyd.dispute",
    "tallyd.object_key",
    "tallyd.changed",
  ]);
});

const NOTHING = {
  paymentIntents: 0,
  charges: 0,
  refunds: 0,
  disputes: 0,
  keys: 0,
  missing: 0,
} as const;

async function apply(facts: readonly Fact[], second = 100): Promise<AppliedFacts["changed"]> {
  const applied = await withTx(db.pool, (tx) => applyFacts(tx, facts, at(second)));
  return applied.changed;
}

/** Everything that the mirror says, without the times of writing. */
async function mirror(): Promise<unknown> {
  const tables = ["stripe_payment_intent", "charge", "refund", "dispute", "object_key"];
  const rows = [];
  for (const table of tables) {
    const result = await db.pool.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(t) - 'first_seen_at' - 'seen_at' as row
         from tallyd.${table} as t
        order by to_jsonb(t)::text`,
    );
    rows.push([table, result.rows.map(({ row }) => row)]);
  }
  return rows;
}

async function changed(): Promise<string[]> {
  const result = await db.pool.query<{ kind: string; id: string }>(
    "delete from tallyd.changed returning kind, id",
  );
  return result.rows.map(({ kind, id }) => `${kind} ${id}`).sort();
}

async function one(sql: string): Promise<Record<string, unknown>> {
  const result = await db.pool.query<Record<string, unknown>>(sql);
  expect(result.rows).toHaveLength(1);
  return result.rows[0] ?? {};
}

const failedCharge = charge({
  id: "ch_a",
  status: "failed",
  paid: false,
  captured: false,
  amount_captured: 0,
  failure_code: "card_declined",
});
const declined = { code: "card_declined", message: "Pat Sample's card" };

const SEQUENCES: Readonly<Record<string, readonly (readonly Fact[])[]>> = {
  "same second (B13)": [
    read(paymentIntent(), { second: 9, eventType: "payment_intent.created" }).facts,
    read(paymentIntent({ status: "processing" }), { second: 10 }).facts,
    read(paid(), { second: 10, eventType: "payment_intent.succeeded" }).facts,
    read(charge(), { second: 10, eventType: "charge.succeeded" }).facts,
  ],
  "decline, then success (B07)": [
    read(failedCharge, { second: 10 }).facts,
    read(paymentIntent({ latest_charge: "ch_a", last_payment_error: declined }), { second: 10 })
      .facts,
    read(paid({ latest_charge: "ch_b" }), { second: 70 }).facts,
    read(charge({ id: "ch_b", metadata: { order: "o-1" } }), { second: 70 }).facts,
    read(paid({ latest_charge: null }), { second: 71 }).facts,
  ],
  "refund that fails later (B29)": [
    read(charge(), { second: 10 }).facts,
    read(charge({ amount_refunded: 1200, refunds: { data: [refund({ amount: 1200 })] } }), {
      second: 20,
    }).facts,
    read(charge({ amount_refunded: 1900 }), { second: 20 }).facts,
    read(refund({ amount: 1200, status: "failed", failure_reason: "declined" }), { second: 90 })
      .facts,
    read(charge({ amount_refunded: 700 }), { second: 90 }).facts,
    read(dispute(), { second: 91 }).facts,
  ],
};

describe("order and repetition", () => {
  test.each(Object.entries(SEQUENCES))("behavior: %s", async (_name, steps) => {
    const clear = (): Promise<void> =>
      emptyTables(db.pool, [
        "tallyd.stripe_payment_intent",
        "tallyd.charge",
        "tallyd.refund",
        "tallyd.dispute",
      ]);
    for (const facts of steps) await apply(facts);
    const expected = await mirror();
    const all = [...steps, ...steps];
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(
          all.map((_step, index) => index),
          { minLength: all.length, maxLength: all.length },
        ),
        fc.integer({ min: 1, max: all.length }),
        async (order, size) => {
          await clear();
          for (let from = 0; from < order.length; from += size) {
            const part = order.slice(from, from + size);
            await apply(part.flatMap((index) => all[index] ?? []));
          }
          expect(await mirror()).toEqual(expected);
        },
      ),
      { numRuns: 25 },
    );
  });

  test("behavior: the sequences end where the field says", async () => {
    for (const facts of SEQUENCES["decline, then success (B07)"] ?? []) await apply(facts);
    expect(await one("select * from tallyd.stripe_payment_intent")).toMatchObject({
      status: "succeeded",
      latest_charge: "ch_b",
      failure_code: null,
    });
    expect(await one("select * from tallyd.charge where charge_id = 'ch_b'")).toMatchObject({
      reference: "o-1",
      derived: false,
    });
    for (const facts of SEQUENCES["refund that fails later (B29)"] ?? []) await apply(facts);
    expect(await one("select * from tallyd.refund")).toMatchObject({ status: "failed" });
    expect(await one("select * from tallyd.charge where charge_id = 'ch_1'")).toMatchObject({
      amount_refunded: "700",
    });
  });

  test("behavior: rivals that apply the same facts end in the same rows", async () => {
    const steps = Object.values(SEQUENCES).flat();
    for (const facts of steps) await apply(facts);
    const expected = await mirror();
    await emptyTables(db.pool, ["tallyd.stripe_payment_intent", "tallyd.charge", "tallyd.refund"]);
    await Promise.all([...steps, ...steps.toReversed()].map((facts) => apply(facts)));
    expect(await mirror()).toEqual(expected);
  });
});

describe("what counts as a change", () => {
  test("behavior: a repetition changes nothing and marks nothing", async () => {
    const facts = [...read(paid({ latest_charge: charge() })).facts, ...read(refund()).facts];
    expect(await apply(facts)).toEqual({ ...NOTHING, paymentIntents: 1, charges: 1, refunds: 1 });
    expect(await changed()).toEqual(["charge ch_1", "payment_intent pi_1"]);
    expect(await apply(facts, 200)).toEqual(NOTHING);
    expect(await changed()).toEqual([]);
    expect(await one("select seen_at from tallyd.charge")).toEqual({ seen_at: at(100) });
  });

  test("behavior: the same content of a newer time is kept in time and marks nothing", async () => {
    await apply(read(charge(), { second: 10 }).facts);
    await changed();
    expect(await apply(read(charge(), { second: 30 }).facts, 200)).toEqual(NOTHING);
    expect(await changed()).toEqual([]);
    await apply(read(charge({ amount_refunded: 500 }), { second: 20 }).facts);
    expect(await one("select amount_refunded, version_at, seen_at from tallyd.charge")).toEqual({
      amount_refunded: "0",
      version_at: at(30),
      seen_at: at(100),
    });
  });

  test("behavior: refunds and disputes mark their charge, or their payment intent", async () => {
    await apply([...read(refund()).facts, ...read(dispute({ charge: "ch_2" })).facts]);
    expect(await changed()).toEqual(["charge ch_1", "charge ch_2"]);
    await apply(read(refund({ id: "re_2", charge: null })).facts);
    expect(await changed()).toEqual(["payment_intent pi_1"]);
  });

  test("behavior: keys mark their object once; the earliest event is kept", async () => {
    const key = (eventId: string, second: number, objectId = "pi_1"): Fact => ({
      kind: "key",
      scope: SCOPE,
      objectId,
      idempotencyKey: "stripe-node-retry-1",
      eventId,
      at: at(second),
    });
    await apply([key("evt_2", 20), key("evt_3", 20), key("evt_2", 20, "py_1")]);
    expect(await changed()).toEqual(["charge py_1", "payment_intent pi_1"]);
    expect(await apply([key("evt_9", 30)])).toEqual(NOTHING);
    expect(await changed()).toEqual([]);
    await apply([key("evt_1", 20)]);
    const sql = "select event_id from tallyd.object_key where object_id = 'pi_1'";
    expect(await one(sql)).toEqual({ event_id: "evt_1" });
  });
});

describe("denied payment intents", () => {
  const missing = (second: number): Fact => ({
    kind: "missing",
    scope: SCOPE,
    id: "pi_1",
    at: at(second),
  });
  const since = async (): Promise<unknown> =>
    (await one("select missing_since from tallyd.stripe_payment_intent"))["missing_since"];

  test("behavior: only while nothing newer was seen", async () => {
    await apply(read(paymentIntent(), { second: 10 }).facts);
    await changed();
    expect(await apply([missing(5)])).toEqual(NOTHING);
    expect(await since()).toBeNull();
    expect(await apply([missing(50)])).toEqual({ ...NOTHING, missing: 1 });
    expect(await since()).toEqual(at(50));
    expect(await changed()).toEqual(["payment_intent pi_1"]);
    expect(await apply([missing(60)])).toEqual(NOTHING);
    expect(await apply(read(paymentIntent(), { second: 61 }).facts)).toEqual({
      ...NOTHING,
      paymentIntents: 1,
    });
    expect(await since()).toBeNull();
    expect(await changed()).toEqual(["payment_intent pi_1"]);
  });

  test("behavior: a denial is taken back by what is newer, even when it loses", async () => {
    await apply(read(paid(), { second: 10 }).facts);
    await apply([missing(50)]);
    await apply(read(paid({ description: "x" }), { second: 20 }).facts);
    expect(await since()).toEqual(at(50));
    // It loses against the success, and still shows that the object is there.
    await apply(read(paymentIntent({ status: "processing" }), { second: 70 }).facts);
    expect(await since()).toBeNull();
    expect(await apply([missing(65)])).toEqual(NOTHING);
  });

  test("behavior: nothing is denied that was never seen", async () => {
    expect(await apply([missing(50)])).toEqual(NOTHING);
  });
});

test("behavior: amounts beyond 2^53 and 2^63 are exact (B33)", async () => {
  const [fact] = ofKind(read(charge()), "charge");
  const amount = 10n ** 77n + 1n;
  if (fact !== undefined) await apply([{ ...fact, amount }]);
  expect(await one("select amount from tallyd.charge")).toEqual({ amount: amount.toString() });
  expect(await apply(fact === undefined ? [] : [{ ...fact, amount }])).toEqual(NOTHING);
});

test("behavior: scopes are name spaces (B20)", async () => {
  const facts = read(charge()).facts;
  const twin = facts.map((fact) => ({ ...fact, scope: "acct_c/test" }));
  expect(await apply([...facts, ...twin])).toEqual({ ...NOTHING, charges: 2 });
});

test("behavior: thousands of facts in one call", async () => {
  const [base] = ofKind(read(charge()), "charge");
  const many = (refunded: bigint): ChargeFact[] =>
    base === undefined
      ? []
      : Array.from({ length: 5000 }, (_, index) => ({
          ...base,
          chargeId: `ch_${String(index)}`,
          amountRefunded: index % 2 === 0 ? refunded : 0n,
          versionRank: index % 2 === 0 ? Number(refunded) : 0,
        }));
  expect(await apply(many(0n))).toEqual({ ...NOTHING, charges: 5000 });
  expect(await apply(many(7n))).toEqual({ ...NOTHING, charges: 2500 });
  expect(await apply(many(7n))).toEqual(NOTHING);
});
