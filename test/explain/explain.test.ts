// Goal: whichever id of a purchase a person has, the same whole story comes out: rows, charges,
// money back, events, decisions, incidents, coverage and the six answers. Method: one purchase with
// everything in it and a stranger beside it, asked for by each id.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { explain, nearestIds } from "../../src/explain/explain.ts";
import type { Explained } from "../../src/explain/explained.ts";
import { explainText } from "../../src/explain/text.ts";
import { presentIncident } from "../../src/incident/present.ts";
import type { IncidentJson } from "../../src/incident/present.ts";
import { addResolution } from "../../src/store/resolutions.ts";
import { saveProgress } from "../../src/store/sources.ts";
import type { World } from "../support/world.ts";
import { SCOPE, openWorld } from "../support/world.ts";

const HOUR = 3_600_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});

afterAll(async () => {
  await world.close();
});

beforeEach(async () => {
  await world.reset();
  await world.pool.query("truncate tallyd.inbox, tallyd.source, tallyd.incident cascade");
});

async function ask(id: string): Promise<Explained<IncidentJson> | null> {
  const { pool: db, now } = world;
  const rules = { retryHorizonMs: 24 * HOUR };
  return explain({ db, now, rules, scopes: [SCOPE], presentIncident }, id);
}

/** A purchase that was charged twice, one of the charges refunded, and a stranger. */
async function fill(): Promise<void> {
  await world.intent({
    id: "L1",
    state: "reconciling",
    key: "k1",
    reference: "o-1",
    ageMs: 3 * HOUR,
  });
  await world.intent({ id: "L2", state: "recorded", key: "k2", charge: "ch_2", reference: "o-1" });
  await world.intent({ id: "L3", state: "recorded", charge: "ch_3" });
  await world.charge({
    id: "ch_1",
    mark: "L1",
    keys: ["k1"],
    ageMs: 2 * HOUR,
    amountRefunded: 400,
  });
  await world.charge({ id: "ch_2" });
  await world.charge({ id: "ch_3" });
  await world.payment({ id: "pi_1", status: "succeeded", mark: "L1", ageMs: 2 * HOUR });
  await world.payment({ id: "pi_open", status: "processing", mark: "L1" });
  await world.refund({ id: "re_1", charge: "ch_1", amount: 400 });
  await world.dispute({ id: "du_1", charge: "ch_2", amount: 1000, status: "needs_response" });
  await event("evt_1", "charge.succeeded", "ch_1");
  await event("evt_9", "charge.succeeded", "ch_3");
  await world.judge();
  await saveProgress(world.pool, {
    source: "stripe.charges",
    scope: SCOPE,
    cursor: null,
    coveredRange: { from: new Date(world.now.getTime() - 9 * HOUR), to: world.now },
  });
  await decided("L1");
  await incident();
}

async function event(id: string, type: string, object: string): Promise<void> {
  await world.pool.query(
    `insert into tallyd.inbox (scope, event_id, type, created_at, object_id, idempotency_key, via)
     values ($1, $2, $3, $4, $5, 'k1', 'webhook')`,
    [SCOPE, id, type, new Date(world.now.getTime() - 2 * HOUR), object],
  );
}

async function decided(intentId: string): Promise<void> {
  await addResolution(
    world.pool,
    {
      intentId,
      operationId: "ref:A:o-1",
      decision: "hold",
      reason: "the operation was paid 2 times",
      fromState: "reconciling",
      toState: null,
      chargeId: null,
      outcome: "none",
      proof: { kind: "held" },
      contract: { uncertainty: { answer: "x", open: ["which charge the row stands for"] } },
      decidedAt: world.now,
    },
    { onlyNews: true },
  );
}

async function incident(): Promise<void> {
  await world.pool.query(
    `insert into tallyd.incident (id, code, subject, operation_id, severity, status, first_seen,
       last_seen, summary, advice, amount_at_risk, currency)
     values ('inc_1', 'double_charge', 'ref:A:o-1', 'ref:A:o-1', 'critical', 'open', $1, $1,
       'o-1 was charged 2 times', 'Keep the oldest.', 1000, 'usd')`,
    [world.now],
  );
}

function ids(list: readonly { readonly id: string }[] | undefined): string[] {
  return (list ?? []).map((one) => one.id);
}

describe("explain", () => {
  beforeEach(fill);

  test("default", async () => {
    const explained = await ask("L1");
    expect(explained).toMatchObject({
      query: "L1",
      operations: ["ref:A:o-1"],
      intent: { id: "L1", state: "reconciling", amount: "1000", idempotencyKey: "k1" },
    });
    expect(ids(explained?.intents)).toEqual(["L1", "L2"]);
    expect(ids(explained?.charges)).toEqual(["ch_1", "ch_2"]);
    expect(explained?.charges[0]).toMatchObject({
      amount: "1000",
      amountReturned: "400",
      net: "600",
      intent: "L1",
      createdAt: "2026-06-01T10:00:00.000Z",
    });
    expect(ids(explained?.paymentIntents)).toEqual(["pi_1", "pi_open"]);
    expect(ids(explained?.refunds)).toEqual(["re_1"]);
    expect(ids(explained?.disputes)).toEqual(["du_1"]);
    expect(ids(explained?.events)).toEqual(["evt_1"]);
    expect(ids(explained?.incidents)).toEqual(["inc_1"]);
    expect(explained?.resolutions).toMatchObject([{ intent: "L1", decision: "hold" }]);
    expect(explained?.coverage).toMatchObject([{ source: "stripe.charges", coversIntent: true }]);
    expect(Object.keys(explained?.contract ?? {})).toEqual([
      "identity",
      "operation",
      "binding",
      "admission",
      "retention",
      "uncertainty",
    ]);
    expect(explained?.contract?.uncertainty.open).toEqual(["which charge the row stands for"]);
  });

  test.each([
    ["the row", "L2", "L2"],
    ["a charge", "ch_1", "L1"],
    ["another charge", "ch_2", "L2"],
    ["a payment intent", "pi_1", "L1"],
    ["a payment intent without a charge", "pi_open", "L1"],
    ["a refund", "re_1", "L1"],
    ["a dispute", "du_1", "L1"],
    ["an event", "evt_1", "L1"],
    ["a key", "k2", "L2"],
    ["a reference", "o-1", "L1"],
    ["an incident", "inc_1", "L1"],
    ["the operation", "ref:A:o-1", "L1"],
  ])("behavior: by %s", async (_title, id, intentId) => {
    const explained = await ask(id);
    expect(explained?.operations).toEqual(["ref:A:o-1"]);
    expect(explained?.intent?.id).toBe(intentId);
    expect(ids(explained?.charges)).toEqual(["ch_1", "ch_2"]);
  });

  test("behavior: a charge without a row has no contract and still its story", async () => {
    await world.charge({ id: "ch_lone", ageMs: HOUR });
    await world.judge();
    const explained = await ask("ch_lone");
    expect(explained).toMatchObject({ intent: null, intents: [], contract: null });
    expect(ids(explained?.charges)).toEqual(["ch_lone"]);
  });

  test("behavior: everything in it is JSON: amounts are strings, times ISO", async () => {
    const explained = await ask("L1");
    expect(JSON.parse(JSON.stringify(explained))).toEqual(explained);
  });

  test("error: an unknown id is null, and what begins like it is named", async () => {
    expect(await ask("ch_unknown")).toBeNull();
    expect(await nearestIds(world.pool, "ch_9")).toEqual(["ch_1", "ch_2", "ch_3"]);
    expect(await nearestIds(world.pool, "zzz")).toEqual([]);
  });
});

describe("explainText", () => {
  beforeEach(fill);

  test("default: answers first, then the story in the order of time", async () => {
    const explained = await ask("L1");
    if (explained === null) throw new Error("L1 is known");
    const lines = explainText(explained).split("\n");
    expect(lines[0]).toBe("L1  reconciling  10.00 USD");
    expect(lines).toContain("rows of the same purchase: L2 (recorded)");
    expect(lines).toContain("binding:     10.00 USD");
    const story = lines.filter((line) => /^ {2}2026-/.test(line)).map((line) => line.slice(2));
    const times = story.map((line) => line.slice(0, 19));
    expect(times).toEqual(times.toSorted());
    expect(new Set(times).size).toBeGreaterThan(2);
    expect(story[0]).toContain("row L1 was made with key k1");
    expect(story.join("\n")).toContain(
      "charge ch_1 of 10.00 USD succeeded, 4.00 USD of it went back, belongs to L1 by its key",
    );
    expect(lines).toContain("  double_charge inc_1 is open");
  });

  test("behavior: no row, and nothing open, are said", async () => {
    await world.charge({ id: "ch_lone", ageMs: HOUR });
    await world.judge();
    const explained = await ask("ch_lone");
    if (explained === null) throw new Error("ch_lone is known");
    const text = explainText(explained);
    expect(text).toContain("ch_lone: no row of the payments table belongs to it");
    expect(text).toContain("nothing is open about it");
  });
});

describe("views", () => {
  beforeEach(fill);

  test("default: the same facts in SQL", async () => {
    const charges = await world.pool.query(
      `select charge_id, intent, net
         from tallyd.charge_list
        where operation = 'ref:A:o-1'
        order by charge_id`,
    );
    expect(charges.rows).toEqual([
      { charge_id: "ch_1", intent: "L1", net: "600" },
      { charge_id: "ch_2", intent: "L2", net: "1000" },
    ]);
    const coverage = await world.pool.query(
      "select source, covered_to from tallyd.coverage_list order by source",
    );
    expect(coverage.rows).toEqual([{ source: "stripe.charges", covered_to: world.now }]);
    const resolutions = await world.pool.query(
      "select intent, decision, state_now from tallyd.resolution_list",
    );
    expect(resolutions.rows).toEqual([
      { intent: "L1", decision: "hold", state_now: "reconciling" },
    ]);
  });
});
