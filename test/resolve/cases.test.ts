// Goal: the field cases that the resolver answers, end to end: the team's table, a Stripe over
// HTTP, one complete pass each. Method: rows and payments as the case lists them, then what stands
// in the team's table, in the record and among the open incidents.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import type { ResolverWorld } from "./resolver-world.ts";
import { DAY, HOUR, MINUTE, SECOND, openResolverWorld } from "./resolver-world.ts";

let db: TestDb;
let opened: ResolverWorld | undefined;

async function world(env: Readonly<Record<string, string>> = {}): Promise<ResolverWorld> {
  opened = await openResolverWorld(db, env);
  return opened;
}

beforeAll(async () => {
  db = await createTestDb();
});
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});
afterAll(() => db.close());

describe("B04: connection error stored as failure, money taken", () => {
  test("default", async () => {
    const w = await world();
    await w.row({
      id: "L1",
      state: "failed_retryable",
      amount: 41000,
      reference: "don-3",
      ageMs: 5 * DAY,
    });
    await w.row({
      id: "L2",
      state: "in_flight",
      amount: 2500,
      reference: "reg-8",
      ageMs: 40 * MINUTE,
    });
    w.stripe.control.seed.paymentIntent({
      id: "pi_1",
      amount: 41000n,
      created: w.at(5 * DAY - MINUTE),
      metadata: { ref: "don-3" },
      charge: { id: "ch_1" },
    });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "recorded", charge_id: "ch_1" });
    // Nobody may say that the second never happened: its worker may still hold it.
    expect(await w.teamRow("L2")).toMatchObject({ state: "in_flight", charge_id: null });
    expect(await w.incidents()).toEqual(["stuck_in_flight"]);
    expect(await w.resolutions("L2")).toMatchObject([{ decision: "wait", outcome: "none" }]);
  });
});

describe("B07: failed attempts, then success inside one payment intent", () => {
  test("default: the success is recorded, whatever was declined before", async () => {
    const w = await world();
    await w.row({
      id: "L1",
      state: "reconciling",
      amount: 4200,
      currency: "eur",
      charge: "ch_a",
      ageMs: HOUR,
    });
    w.stripe.control.seed.charge({
      id: "ch_a",
      status: "failed",
      amount: 4200n,
      currency: "eur",
      payment_intent: "pi_1",
      created: w.at(HOUR - MINUTE),
    });
    w.stripe.control.seed.paymentIntent({
      id: "pi_1",
      amount: 4200n,
      currency: "eur",
      created: w.at(HOUR),
      charge: { id: "ch_b" },
    });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "recorded", charge_id: "ch_b" });
    expect(await w.incidents()).toEqual([]);
  });

  test("behavior: a row that failed for good is drift and is never written", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "failed_terminal", amount: 4200, charge: "pi_1", ageMs: HOUR });
    w.stripe.control.seed.paymentIntent({ id: "pi_1", amount: 4200n, created: w.at(HOUR) });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "failed_terminal" });
    expect(await w.resolutions("L1")).toEqual([]);
    expect(await w.incidents()).toEqual(["state_drift failed_but_paid"]);
  });

  test("behavior: declined for good; the advice says what is still open at Stripe", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 4200, ageMs: HOUR });
    w.stripe.control.seed.paymentIntent({
      id: "pi_1",
      amount: 4200n,
      status: "requires_payment_method",
      created: w.at(HOUR - MINUTE),
      metadata: { intent_id: "L1" },
      charge: { id: "ch_a", status: "failed", failure_code: "card_declined" },
    });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({
      state: "failed_terminal",
      charge_id: null,
      response_json: { resolved_by: "tallyd", error: { type: "card_error" } },
    });
    const [resolution] = await w.resolutions("L1");
    expect(resolution).toMatchObject({ decision: "failed_terminal", outcome: "applied" });
    expect(resolution?.reason).toContain("pi_1 is still open at Stripe");
    expect(await w.incidents()).toEqual([]);
  });
});

describe("B08: payment succeeds, or is held, after the order was cancelled", () => {
  test("default: both rows stay as they are and are told", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "failed_terminal", amount: 3000, currency: "gbp", ageMs: HOUR });
    await w.row({ id: "L2", state: "failed_terminal", amount: 3000, currency: "gbp", ageMs: HOUR });
    const { seed } = w.stripe.control;
    const common = { amount: 3000n, currency: "gbp", created: w.at(HOUR) };
    seed.paymentIntent({
      ...common,
      id: "pi_1",
      metadata: { intent_id: "L1" },
      charge: { id: "ch_1" },
    });
    seed.refund({ charge: "ch_1", amount: 500n });
    seed.paymentIntent({
      ...common,
      id: "pi_2",
      status: "requires_capture",
      metadata: { intent_id: "L2" },
    });
    await w.pass();
    await w.pass();
    expect((await w.teamRow("L1")).state).toBe("failed_terminal");
    expect((await w.teamRow("L2")).state).toBe("failed_terminal");
    expect(await w.incidents()).toEqual([
      "state_drift failed_but_held",
      "state_drift failed_but_paid",
    ]);
  });
});

describe("B09: key older than the replay window", () => {
  test("default: one key charged twice is a double, and nothing is written (settled)", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 9900, key: "k1", ageMs: 30 * HOUR });
    const { seed } = w.stripe.control;
    const common = { amount: 9900n, metadata: { idem: "k1" } };
    seed.paymentIntent({ ...common, id: "pi_1", created: w.at(30 * HOUR), charge: { id: "ch_1" } });
    seed.paymentIntent({ ...common, id: "pi_2", created: w.at(2 * HOUR), charge: { id: "ch_2" } });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "reconciling", charge_id: null });
    expect(await w.resolutions("L1")).toMatchObject([
      {
        decision: "hold",
        proof: { code: "double_charge", basis: "key", charges: ["ch_1", "ch_2"] },
      },
    ]);
    expect(await w.incidents()).toEqual(["double_charge key"]);
  });

  test("behavior: never charged and past the window: a new intent is needed", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 9900, key: "k1", ageMs: 30 * HOUR });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "failed_terminal", charge_id: null });
    const [resolution] = await w.resolutions("L1");
    expect(resolution).toMatchObject({ decision: "failed_terminal", outcome: "applied" });
    expect(resolution?.reason).toContain("do not reuse the key");
    expect(resolution?.proof).toMatchObject({
      kind: "absence",
      objects: 0,
      look: { kind: "lists" },
    });
    expect(Object.keys(resolution?.contract ?? {}).sort()).toEqual([
      "admission",
      "binding",
      "identity",
      "operation",
      "retention",
      "uncertainty",
    ]);
    expect(await w.incidents()).toEqual([]);
    expect(w.stripe.control.counts["GET /v1/payment_intents/search"]).toBeUndefined();
  });

  test("behavior: never charged and the key still protects: a retry is safe", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 9900, ageMs: 3 * HOUR });
    // Another row's payment of the same time carries the mark, which shows that the writer sets it.
    await w.row({ id: "L2", state: "recorded", amount: 500, charge: "ch_2", ageMs: 3 * HOUR });
    w.stripe.control.seed.paymentIntent({
      id: "pi_2",
      amount: 500n,
      created: w.at(3 * HOUR),
      metadata: { intent_id: "L2" },
      charge: { id: "ch_2" },
    });
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "failed_retryable", response_json: null });
    expect(await w.resolutions("L1")).toMatchObject([
      { outcome: "applied", proof: { objects: 2, marks: ["metadata.intent_id"] } },
    ]);
    expect(await w.incidents()).toEqual([]);
  });

  test("error: a writer that sets no mark proves no absence", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 9900, ageMs: 30 * HOUR });
    await w.row({ id: "L2", state: "recorded", amount: 500, charge: "ch_2", ageMs: 30 * HOUR });
    w.stripe.control.seed.paymentIntent({
      id: "pi_2",
      amount: 500n,
      created: w.at(30 * HOUR),
      charge: { id: "ch_2" },
    });
    await w.pass();
    expect((await w.teamRow("L1")).state).toBe("reconciling");
    const [resolution] = await w.resolutions("L1");
    expect(resolution).toMatchObject({
      decision: "unproven",
      proof: { missing: [{ what: "mark", ids: ["ch_2", "pi_2"] }] },
    });
    // The ladder's last rung lies behind, so one look ends it and a person is told what is missing.
    expect(await w.incidents()).toEqual(["stuck_reconciling"]);
  });
});

describe("B23: a fresh negative is not yet", () => {
  test("default: the payment intent succeeded and its charge is not shown yet", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 2000, charge: "pi_1", ageMs: HOUR });
    w.stripe.control.seed.paymentIntent({
      id: "pi_1",
      created: w.at(HOUR),
      charge: { id: "ch_1" },
      events: false,
    });
    w.stripe.control.hide("ch_1");
    const shown = w.stripe.control.fault({ kind: "no_latest_charge", id: "pi_1", count: Infinity });
    const listed = w.stripe.control.fault({
      kind: "no_latest_charge",
      count: Infinity,
      path: "/v1/payment_intents",
    });
    await w.pass();
    expect((await w.teamRow("L1")).state).toBe("reconciling");
    expect(await w.resolutions("L1")).toMatchObject([{ decision: "wait" }]);
    shown();
    listed();
    await w.pass();
    expect(await w.teamRow("L1")).toMatchObject({ state: "recorded", charge_id: "pi_1" });
  });

  test("error: the row names an id that Stripe denies: check account, mode and key", async () => {
    const w = await world();
    await w.row({
      id: "L1",
      state: "reconciling",
      amount: 2000,
      charge: "pi_gone",
      ageMs: 30 * HOUR,
    });
    await w.pass();
    expect((await w.teamRow("L1")).state).toBe("reconciling");
    const [resolution] = await w.resolutions("L1");
    expect(resolution).toMatchObject({ decision: "unproven" });
    expect(resolution?.reason).toContain("check account, mode and key");
  });
});

describe("B25: search and young lists are no absence", () => {
  test("default: 20 seconds old, nothing found, no verdict", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 2000, ageMs: 20 * SECOND });
    await w.pass();
    expect((await w.teamRow("L1")).state).toBe("reconciling");
    expect(await w.resolutions("L1")).toMatchObject([
      { decision: "unproven", proof: { missing: [{ what: "time" }] } },
    ]);
    expect(await w.incidents()).toEqual([]);
  });
});

describe("B26: an error in mid-run", () => {
  test.each([
    ["429 on the charges list", { kind: "rate_limit", path: "/v1/charges", retryAfter: "0" }],
    [
      "401, key revoked",
      { kind: "respond", status: 401, body: { error: { type: "invalid_request_error" } } },
    ],
  ] as const)("default: %s: nothing is decided", async (_title, fault) => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 2000, ageMs: 30 * HOUR });
    const end = w.stripe.control.fault({ ...fault, count: Infinity });
    const { failures } = await w.pass();
    expect(failures.map((failure) => failure.source)).toContain("resolve");
    expect((await w.teamRow("L1")).state).toBe("reconciling");
    expect(await w.resolutions("L1")).toEqual([]);
    end();
    await w.pass();
    expect((await w.teamRow("L1")).state).toBe("failed_terminal");
  });
});
