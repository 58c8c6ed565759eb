// Goal: a report says what happened in its range, in exact amounts, and what that rests on.
// Method: a small world around the last whole day; what lies outside of it must not count.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { addMs } from "../../src/core/clock.ts";
import { gatherReport } from "../../src/report/gather.ts";
import { reportRange } from "../../src/report/range.ts";
import type { Bound } from "../../src/report/range.ts";
import type { Report } from "../../src/report/report.ts";
import { reportText } from "../../src/report/text.ts";
import { saveProgress } from "../../src/store/sources.ts";
import { addResolution } from "../../src/store/resolutions.ts";
import { CHAIN, chainSettings, transfer } from "../support/chain-rows.ts";
import { SCOPE, openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const HOUR = 3_600_000;
// The world's now is noon: a day ago is in the middle of the last whole day.
const INSIDE = 24 * HOUR;
const BEFORE = 40 * HOUR;
const AFTER = HOUR;

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.reset({ chains: [chainSettings()] });
  await world.pool.query("truncate tallyd.incident, tallyd.read_count cascade");
});

const EXPECTED = [
  { source: "local", scope: "local", silentMaxMs: HOUR },
  { source: "stripe.charges", scope: SCOPE, silentMaxMs: 6 * HOUR },
];

async function report(from: Bound = null, to: Bound = null): Promise<Report> {
  const { pool, now } = world;
  const range = await reportRange(pool, { from, to, timeZone: "UTC", now });
  const stripe = { accounts: [], livemode: false };
  const settings = { stripe, chains: [chainSettings()] };
  return gatherReport(pool, { range, now, settings, expected: EXPECTED });
}

async function decide(
  intentId: string,
  decision: string,
  outcome: "applied" | "none",
  ageMs: number,
): Promise<void> {
  await addResolution(
    world.pool,
    {
      ...{ intentId, operationId: null, decision, reason: "r", fromState: "reconciling" },
      ...{ toState: null, chargeId: null, outcome, proof: {}, contract: {} },
      decidedAt: addMs(world.now, -ageMs),
    },
    { onlyNews: false },
  );
}

describe("range", () => {
  const instants = async (zone: string, from: Bound, to: Bound, now: string): Promise<string[]> => {
    const bounds = { from, to, timeZone: zone, now: new Date(now) };
    const range = await reportRange(world.pool, bounds);
    return [range.from.toISOString(), range.to.toISOString()];
  };
  const at = (text: string): Bound => ({ at: new Date(text) });

  test.each([
    ["UTC", "2026-06-01T12:00:00Z", "2026-05-31T00:00:00.000Z", "2026-06-01T00:00:00.000Z"],
    // Ten past midnight in Berlin is still the day before in UTC.
    [
      "Europe/Berlin",
      "2026-05-31T22:10:00Z",
      "2026-05-30T22:00:00.000Z",
      "2026-05-31T22:00:00.000Z",
    ],
    // A day of 23 hours: the clocks go forward on 29 March.
    [
      "Europe/Berlin",
      "2026-03-30T08:00:00Z",
      "2026-03-28T23:00:00.000Z",
      "2026-03-29T22:00:00.000Z",
    ],
  ])("default: the last whole day in %s at %s", async (zone, now, from, to) => {
    expect(await instants(zone, null, null, now)).toEqual([from, to]);
  });

  test("behavior: days are those of the zone, instants are instants, now is the end", async () => {
    const now = "2026-06-01T12:00:00Z";
    const berlin = "Europe/Berlin";
    expect(await instants(berlin, { day: "2026-05-01" }, { day: "2026-05-03" }, now)).toEqual([
      ...["2026-04-30T22:00:00.000Z", "2026-05-02T22:00:00.000Z"],
    ]);
    expect(await instants(berlin, { day: "2026-06-01" }, null, now)).toEqual([
      ...["2026-05-31T22:00:00.000Z", "2026-06-01T12:00:00.000Z"],
    ]);
    expect(await instants(berlin, null, at("2026-05-03T10:00:00Z"), now)).toEqual([
      ...["2026-05-02T10:00:00.000Z", "2026-05-03T10:00:00.000Z"],
    ]);
    expect(await instants("UTC", at("2026-06-01T11:00:00Z"), { day: "2026-06-05" }, now)).toEqual([
      ...["2026-06-01T11:00:00.000Z", "2026-06-01T12:00:00.000Z"],
    ]);
  });
});

describe("money", () => {
  const nothing = { count: 0, amount: "0" };

  test("default: per currency, counted where it was made", async () => {
    await world.intent({ id: "L1", charge: "ch_1", amount: 1_500, ageMs: INSIDE });
    await world.charge({ id: "ch_1", amount: 1_500, mark: "L1", ageMs: INSIDE });
    await world.charge({ id: "ch_2", amount: 700, ageMs: INSIDE });
    await world.intent({ id: "L3", charge: "ch_3", amount: 900, ageMs: BEFORE });
    await world.charge({ id: "ch_3", amount: 900, mark: "L3", ageMs: BEFORE, amountRefunded: 300 });
    // A refund of the day of a charge of the day before; one that failed; one that came too late.
    await world.refund({ id: "re_1", charge: "ch_3", amount: 300, ageMs: INSIDE });
    await world.refund({ id: "re_2", charge: "ch_1", amount: 1, status: "failed", ageMs: INSIDE });
    await world.refund({ id: "re_3", charge: "ch_1", amount: 10, ageMs: AFTER });
    await world.dispute({ id: "dp_1", charge: "ch_3", amount: 200, status: "lost" });
    await world.pool.query("update tallyd.dispute set created_at = $1", [
      addMs(world.now, -INSIDE),
    ]);
    await world.charge({ id: "ch_4", amount: 5_000, owned: "no", ageMs: INSIDE });
    await world.charge({ id: "ch_5", amount: 6_000, status: "failed", ageMs: INSIDE });
    await world.charge({ id: "ch_6", amount: 7_000, ageMs: AFTER });
    await world.intent({ id: "L7", state: "reconciling", amount: 8_000, ageMs: INSIDE });
    await world.intent({ id: "L8", kind: "refund", amount: 8_000, ageMs: INSIDE });
    const yen = { currency: "jpy", amount: 9_007_199_254_740_993n };
    await world.intent({ id: "L9", charge: "ch_9", ...yen, ageMs: INSIDE });
    await world.judge();
    expect((await report()).money).toEqual([
      {
        ...{ rail: "stripe", network: null, currency: "jpy" },
        recorded: { count: 1, amount: "9007199254740993" },
        ...{ charged: nothing, withoutRow: nothing, refunded: nothing, lost: nothing, net: "0" },
      },
      {
        ...{ rail: "stripe", network: null, currency: "usd" },
        recorded: { count: 1, amount: "1500" },
        charged: { count: 2, amount: "2200" },
        withoutRow: { count: 1, amount: "700" },
        refunded: { count: 1, amount: "300" },
        lost: { count: 1, amount: "200" },
        net: "1700",
      },
    ]);
  });

  test("behavior: one symbol on two networks is two currencies", async () => {
    // Nobody watches that one any more, and its money was real.
    const other = "eip155:137";
    await world.pool.query(
      `insert into tallyd.source (source, scope)
       values ('evm.logs', $1)`,
      [other],
    );
    await transfer(world, { tx: "t1", value: 1_000, ageMs: INSIDE });
    await transfer(world, { tx: "t2", value: 2_000, ageMs: INSIDE, scope: other });
    const found = await report();
    expect(found.money.map((one) => [one.network, one.currency, one.charged])).toEqual([
      [other, "usdc", { count: 1, amount: "2000" }],
      [CHAIN, "usdc", { count: 1, amount: "1000" }],
    ]);
    expect(reportText(found)).toContain(`USDC on ${CHAIN}: `);
  });
});

test("default: rows by their state, those made in the range and those that are not final", async () => {
  await world.intent({ id: "L1", state: "recorded", ageMs: INSIDE });
  await world.intent({ id: "L2", state: "recorded", ageMs: BEFORE });
  await world.intent({ id: "L3", state: "in_flight", ageMs: INSIDE });
  await world.intent({ id: "L4", state: "reconciling", ageMs: BEFORE });
  await world.intent({ id: "L5", state: "failed_terminal", ageMs: AFTER });
  expect((await report()).intents).toEqual({
    made: { in_flight: 1, recorded: 1 },
    unsettled: { in_flight: 1, reconciling: 1 },
  });
});

test("default: decisions by what was decided and what became of it, with their rows", async () => {
  for (let n = 0; n < 60; n += 1) await decide(`L${String(n)}`, "recorded", "applied", INSIDE);
  await decide("L1", "wait", "none", INSIDE);
  await decide("L1", "wait", "none", INSIDE - 1);
  await decide("L2", "wait", "none", AFTER);
  const { resolutions } = await report();
  expect(resolutions.map(({ intents, ...rest }) => [rest, intents.length])).toEqual([
    [{ decision: "recorded", outcome: "applied", count: 60, more: 10 }, 50],
    [{ decision: "wait", outcome: "none", count: 2, more: 0 }, 1],
  ]);
  expect(resolutions[0]?.intents.slice(0, 2)).toEqual(["L59", "L58"]);
});

describe("incidents", () => {
  const incident = async (
    id: string,
    over: { severity?: string; status?: string; ageMs?: number; mutedMs?: number },
    steps: readonly (readonly [string, number])[],
  ): Promise<void> => {
    const { severity = "critical", status = "open", ageMs = INSIDE, mutedMs } = over;
    await world.pool.query(
      `insert into tallyd.incident (id, code, subject, severity, status, first_seen, last_seen,
         summary, advice, muted_until)
       values ($1, 'double_charge', $1, $2, $3, $4, $4, 's', 'a', $5)`,
      [
        ...[id, severity, status, addMs(world.now, -ageMs)],
        mutedMs === undefined ? null : addMs(world.now, mutedMs),
      ],
    );
    for (const [step, stepAgeMs] of steps) {
      await world.pool.query(
        `insert into tallyd.incident_entry (incident_id, at, actor, step)
         values ($1, $2, 'tallyd', $3)`,
        [id, addMs(world.now, -stepAgeMs), step],
      );
    }
  };

  test("default: what began, came back and ended, and what is open now by age", async () => {
    await incident("inc_1", {}, [["opened", INSIDE]]);
    await incident("inc_2", { severity: "warning", status: "closed" }, [
      ["opened", BEFORE],
      ["closed", INSIDE],
      ["reopened", INSIDE - 1],
      ["closed", INSIDE - 2],
    ]);
    await incident("inc_3", { status: "acknowledged", ageMs: 240 * HOUR }, [
      ["opened", 240 * HOUR],
    ]);
    await incident("inc_4", { status: "muted", ageMs: AFTER / 2, mutedMs: HOUR }, []);
    await incident("inc_5", { status: "muted", ageMs: BEFORE, mutedMs: -HOUR }, []);
    await incident("inc_6", { severity: "info", ageMs: 2 * HOUR }, [["opened", 2 * HOUR]]);
    const found = await report();
    expect(found.incidents).toEqual({
      opened: [{ severity: "critical", count: 1, ids: ["inc_1"] }],
      reopened: [{ severity: "warning", count: 1, ids: ["inc_2"] }],
      closed: [{ severity: "warning", count: 1, ids: ["inc_2"] }],
      openNow: [
        { severity: "critical", status: "acknowledged", age: "older", count: 1, ids: ["inc_3"] },
        { severity: "critical", status: "muted", age: "hour", count: 1, ids: ["inc_4"] },
        { severity: "critical", status: "open", age: "week", count: 2, ids: ["inc_5", "inc_1"] },
        { severity: "info", status: "open", age: "day", count: 1, ids: ["inc_6"] },
      ],
    });
    // As exit code 3 counts them: not the mute that holds, nor what is only for information.
    expect(found.open).toBe(3);
  });
});

describe("coverage", () => {
  const covered = (source: string, scope: string, fromAgeMs: number, toAgeMs: number) =>
    saveProgress(world.pool, {
      ...{ source, scope, cursor: null },
      coveredRange: { from: addMs(world.now, -fromAgeMs), to: addMs(world.now, -toAgeMs) },
    });
  const states = async (from: Bound = null): Promise<string[]> =>
    (await report(from)).coverage.map(({ source, state }) => `${source} ${state}`);

  test("default: proven over the range, or what is missing of it", async () => {
    await covered("local", "local", 900 * HOUR, 0);
    await covered("stripe.charges", SCOPE, 50 * HOUR, 30 * HOUR);
    await covered("stripe.charges", SCOPE, 28 * HOUR, 13 * HOUR);
    await covered("stripe.refunds", SCOPE, 50 * HOUR, 1 * HOUR);
    const found = await report();
    expect(found.complete).toBe(false);
    expect(found.coverage).toEqual([
      {
        ...{ source: "local", scope: "local", expected: true, state: "complete", missing: [] },
        ...{ provenTo: "2026-06-01T00:00:00.000Z", failingSince: null, errorCode: null },
      },
      {
        ...{ source: "stripe.charges", scope: SCOPE, expected: true, state: "incomplete" },
        provenTo: "2026-05-31T23:00:00.000Z",
        missing: [
          { from: "2026-05-31T06:00:00.000Z", to: "2026-05-31T08:00:00.000Z" },
          { from: "2026-05-31T23:00:00.000Z", to: "2026-06-01T00:00:00.000Z" },
        ],
        ...{ failingSince: null, errorCode: null },
      },
      {
        ...{ source: "stripe.refunds", scope: SCOPE, expected: false, state: "complete" },
        ...{ missing: [], provenTo: "2026-06-01T00:00:00.000Z" },
        ...{ failingSince: null, errorCode: null },
      },
    ]);
  });

  test("behavior: the newest end may still be unread while the source is in time", async () => {
    await covered("local", "local", 900 * HOUR, HOUR / 60);
    await covered("stripe.charges", SCOPE, 50 * HOUR, 5 * HOUR);
    const today: Bound = { day: "2026-06-01" };
    expect(await states(today)).toEqual(["local catching_up", "stripe.charges catching_up"]);
    expect((await report(today)).complete).toBe(true);
    await world.pool.query("update tallyd.source set failing_since = now() where source = 'local'");
    expect(await states(today)).toEqual(["local failing", "stripe.charges catching_up"]);
    // What it read before is read.
    expect(await states()).toEqual(["local complete", "stripe.charges complete"]);
  });

  test("error: an expected source that was never read proves nothing", async () => {
    await covered("local", "local", 900 * HOUR, 0);
    const found = await report();
    expect(found.complete).toBe(false);
    expect(found.coverage[1]).toMatchObject({
      ...{ source: "stripe.charges", state: "incomplete", provenTo: null },
      missing: [{ from: "2026-05-31T00:00:00.000Z", to: "2026-06-01T00:00:00.000Z" }],
    });
    expect(reportText(found)).toContain("NOT everything was read");
  });
});

test("default: reads of the days that the range touches, and of the month", async () => {
  await world.pool.query(
    `insert into tallyd.read_count (day, scope, endpoint, reads)
     values ('2026-05-30', $1, 'events', 7), ('2026-05-31', $1, 'events', 5),
            ('2026-05-31', $1, 'charges', 2), ('2026-06-01', $1, 'events', 1),
            ('2026-04-01', $1, 'events', 99)`,
    [SCOPE],
  );
  expect((await report()).reads).toEqual({
    range: [
      { scope: SCOPE, endpoint: "charges", reads: 2 },
      { scope: SCOPE, endpoint: "events", reads: 5 },
    ],
    month: [{ scope: SCOPE, used: 15, allowed: 10_000 }],
  });
});

test("default: the text says all of it, and a quiet day is quiet", async () => {
  const quiet = reportText(await report());
  expect(quiet.split("\n")[0]).toBe("report from 2026-05-31 00:00 to 2026-06-01 00:00 (UTC)");
  expect(quiet).toContain("money:\n  none moved, none was meant to");
  await world.intent({ id: "L\u001b[31m", charge: "ch_1", amount: 1_500, ageMs: INSIDE });
  await world.charge({ id: "ch_1", amount: 1_500, ageMs: INSIDE });
  await world.charge({ id: "ch_2", amount: 700, ageMs: INSIDE });
  await world.refund({ id: "re_1", charge: "ch_1", amount: 300, ageMs: INSIDE });
  await decide("L\u001b[31m", "recorded", "applied", INSIDE);
  await world.judge();
  const told = reportText(await report());
  expect(told).toContain(
    "  USD: recorded 15.00 USD in 1, charged 22.00 USD in 2, of that without a row 7.00 USD " +
      "in 1, refunded 3.00 USD in 1, net 19.00 USD",
  );
  expect(told).toContain("  made in the range: 1 recorded");
  // A row's id is text from outside.
  expect(told).toContain("  1 recorded (applied): L\\u{1b}[31m");
});
