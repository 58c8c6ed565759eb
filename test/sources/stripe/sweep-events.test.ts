import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openHoles } from "../../../src/sources/stripe/event-holes.ts";
import { nextSweepDelay } from "../../../src/sources/stripe/sweep-beat.ts";
import { sweepEvents, SWEPT_TYPES } from "../../../src/sources/stripe/sweep-events.ts";
import { walkLists } from "../../../src/sources/stripe/walk-lists.ts";
import { insertEvents } from "../../../src/store/inbox.ts";
import { coverage } from "../../../src/store/sources.ts";
import {
  ACCOUNT,
  ACCOUNT_SCOPE,
  DAY,
  HOUR,
  KEY,
  MINUTE,
  openStripeWorld,
  PLATFORM_SCOPE,
  SECOND,
  secondsAt,
  T,
} from "./stripe-world.ts";
import type { StripeWorld } from "./stripe-world.ts";

let world: StripeWorld;

beforeEach(async () => {
  world = await openStripeWorld();
});

afterEach(async () => {
  await world.close();
});

const EVENTS = { source: "stripe.events", scope: PLATFORM_SCOPE };

interface InboxRow {
  readonly scope: string;
  readonly event_id: string;
  readonly via: string;
  readonly idempotency_key: string | null;
}

async function inbox(): Promise<InboxRow[]> {
  const found = await world.pool.query<InboxRow>(
    `select scope, event_id, via, idempotency_key
       from tallyd.inbox
      order by created_at, event_id`,
  );
  return found.rows;
}

function event(id: string, offsetMs: number, account?: string): void {
  world.sandbox.control.seed.event({
    id,
    type: "charge.succeeded",
    object: { id: `ch_${id}`, object: "charge" },
    created: secondsAt(offsetMs),
    idempotencyKey: `key_${id}`,
    ...(account === undefined ? {} : { account }),
  });
}

async function covered(): Promise<[number, number][]> {
  const ranges = await coverage(world.pool, EVENTS);
  return ranges.map(({ from, to }) => [from.getTime() - T, to.getTime() - T]);
}

describe("the sweep", () => {
  test("default: events come into the inbox once, with their key", async () => {
    event("evt_1", -HOUR);
    event("evt_2", -MINUTE / 2);
    expect(await sweepEvents(world.deps)).toMatchObject({ ok: true, fresh: 2, missed: 1 });
    expect(await inbox()).toEqual([
      { scope: PLATFORM_SCOPE, event_id: "evt_1", via: "sweep", idempotency_key: "key_evt_1" },
      { scope: PLATFORM_SCOPE, event_id: "evt_2", via: "sweep", idempotency_key: "key_evt_2" },
    ]);
    expect(await covered()).toEqual([[-48 * HOUR - 10 * MINUTE, -MINUTE]]);
    expect(await sweepEvents(world.deps)).toMatchObject({ fresh: 0, missed: 0, pages: 1 });
  });

  test("behavior: an event listed later than a younger one is not missed (B25 d)", async () => {
    event("evt_9", -SECOND);
    await sweepEvents(world.deps);
    world.clock.ms = T + 3 * SECOND;
    event("evt_8", -2 * SECOND);
    await sweepEvents(world.deps);
    expect((await inbox()).map((row) => row.event_id)).toEqual(["evt_8", "evt_9"]);
    // Even one that settles after the coverage has moved past it.
    world.clock.ms = T + 9 * MINUTE;
    await sweepEvents(world.deps);
    event("evt_7", -3 * SECOND);
    await sweepEvents(world.deps);
    expect((await inbox()).map((row) => row.event_id)).toEqual(["evt_7", "evt_8", "evt_9"]);
  });

  test("behavior: a refund of an old charge is seen through its events (B25 b)", async () => {
    const control = world.sandbox.control;
    control.seed.charge({ id: "ch_old", created: secondsAt(-180 * DAY), events: false });
    control.seed.refund({ id: "re_1", charge: "ch_old", created: secondsAt(-HOUR) });
    await sweepEvents(world.deps);
    const types = await world.pool.query<{ type: string }>(
      "select type from tallyd.inbox order by type",
    );
    expect(types.rows.map((row) => row.type)).toEqual(["charge.refunded", "refund.created"]);
  });

  test("behavior: the list walk finds that refund too without its events (B25 b)", async () => {
    const control = world.sandbox.control;
    const quiet = { events: false };
    control.seed.charge({ id: "ch_old", created: secondsAt(-180 * DAY), ...quiet });
    control.seed.refund({ id: "re_1", charge: "ch_old", created: secondsAt(-HOUR), ...quiet });
    await sweepEvents(world.deps);
    expect(await inbox()).toEqual([]);
    await walkLists(world.deps);
    const refunds = await world.pool.query<{ refund_id: string; charge_id: string }>(
      "select refund_id, charge_id from tallyd.refund",
    );
    expect(refunds.rows).toEqual([{ refund_id: "re_1", charge_id: "ch_old" }]);
  });

  test("behavior: a crash in the middle loses nothing and moves nothing", async () => {
    for (let index = 0; index < 250; index += 1) event(`evt_${String(index + 100)}`, -HOUR);
    world.sandbox.control.fault({ kind: "error_before", nth: 3, count: Infinity });
    expect(await sweepEvents(world.deps)).toMatchObject({
      ok: false,
      failed: [{ source: "stripe.events", code: "server" }],
    });
    expect(await inbox()).toHaveLength(200);
    expect(await covered()).toEqual([]);
    world.sandbox.control.clearFaults();
    expect(await sweepEvents(world.deps)).toMatchObject({ ok: true, fresh: 50 });
    expect(await inbox()).toHaveLength(250);
  });

  test("behavior: each account is swept in its own name space (B20)", async () => {
    event("evt_p", -HOUR);
    event("evt_c", -HOUR, ACCOUNT);
    const stripe = { ...world.deps.settings.stripe, accounts: [ACCOUNT] };
    const deps = { ...world.deps, settings: { ...world.deps.settings, stripe } };
    expect(await sweepEvents(deps)).toMatchObject({ ok: true, fresh: 2 });
    expect((await inbox()).map((row) => [row.scope, row.event_id])).toEqual([
      [ACCOUNT_SCOPE, "evt_c"],
      [PLATFORM_SCOPE, "evt_p"],
    ]);
  });

  test("behavior: what a webhook brought is neither new nor missed", async () => {
    event("evt_1", -HOUR);
    await sweepEvents(world.deps);
    const before = await inbox();
    await world.pool.query("update tallyd.inbox set via = 'webhook', webhook_at = created_at");
    world.clock.ms = T + MINUTE;
    expect(await sweepEvents(world.deps)).toMatchObject({ fresh: 0, missed: 0 });
    expect(await inbox()).toEqual(before.map((row) => ({ ...row, via: "webhook" })));
  });

  test("behavior: an unknown event is left out and blinds nobody", async () => {
    const body = {
      data: [
        { id: "evt_x", object: "event", created: secondsAt(-HOUR), type: 7 },
        {
          id: "evt_y",
          object: "event",
          created: secondsAt(-HOUR),
          type: "charge.failed",
          livemode: false,
          data: { object: { id: "ch_1", object: "charge" } },
        },
      ],
      has_more: false,
    };
    world.sandbox.control.fault({ kind: "respond", path: "/v1/events", body });
    expect(await sweepEvents(world.deps)).toMatchObject({ ok: true, fresh: 1 });
  });

  test("error: a refused key fails the source and covers nothing", async () => {
    world.sandbox.control.revokeKey(KEY);
    expect(await sweepEvents(world.deps)).toMatchObject({ failed: [{ code: "auth" }] });
    expect(await covered()).toEqual([]);
  });

  test("default: one request can name all types", () => {
    expect(new Set(SWEPT_TYPES).size).toBe(SWEPT_TYPES.length);
    expect(SWEPT_TYPES.length).toBeLessThanOrEqual(20);
  });
});

describe("B25 c: down for longer than events are kept", () => {
  test("default: the hole is told with its dates and closes by the list walk", async () => {
    await sweepEvents(world.deps);
    world.sandbox.control.seed.paymentIntent({
      id: "pi_open",
      status: "processing",
      created: secondsAt(-HOUR),
      charge: { id: "ch_open", status: "pending" },
    });
    await walkLists(world.deps);
    world.sandbox.control.seed.charge({ id: "ch_hole", created: secondsAt(2 * DAY) });
    world.clock.ms = T + 40 * DAY;

    const swept = await sweepEvents(world.deps);
    const hole = { from: new Date(T - MINUTE), to: new Date(T + 10 * DAY + 10 * MINUTE) };
    expect(swept).toMatchObject({ ok: true, holes: [{ ...hole, scope: PLATFORM_SCOPE }] });
    expect(await openHoles(world.pool, PLATFORM_SCOPE)).toEqual([{ ...hole, filledAt: null }]);
    expect(await covered()).toEqual([
      [-48 * HOUR - 10 * MINUTE, -MINUTE],
      [10 * DAY + 10 * MINUTE, 40 * DAY - MINUTE],
    ]);
    // What may have changed unseen is read by id.
    const refetch = await world.pool.query<{ object_id: string }>(
      "select object_id from tallyd.refetch order by object_id",
    );
    expect(refetch.rows.map((row) => row.object_id)).toEqual(["ch_open", "pi_open"]);

    await walkLists(world.deps, { resources: ["charges"] });
    expect(await openHoles(world.pool, PLATFORM_SCOPE)).toHaveLength(1);
    await walkLists(world.deps);
    expect(await openHoles(world.pool, PLATFORM_SCOPE)).toEqual([]);
    const found = await world.pool.query("select 1 from tallyd.charge where charge_id = 'ch_hole'");
    expect(found.rows).toHaveLength(1);
    expect(await sweepEvents(world.deps)).toMatchObject({ holes: [] });
  });

  test("behavior: a sweep that fails again and again notes one hole", async () => {
    await sweepEvents(world.deps);
    world.sandbox.control.fault({ kind: "error_before", path: "/v1/events", count: Infinity });
    world.clock.ms = T + 40 * DAY;
    await sweepEvents(world.deps);
    world.clock.ms = T + 41 * DAY;
    await sweepEvents(world.deps);
    const holes = await openHoles(world.pool, PLATFORM_SCOPE);
    expect(holes.map((hole) => hole.to.getTime() - T)).toEqual([11 * DAY + 10 * MINUTE]);
  });

  test("behavior: 29 days are no hole", async () => {
    await sweepEvents(world.deps);
    world.clock.ms = T + 29 * DAY;
    expect(await sweepEvents(world.deps)).toMatchObject({ holes: [] });
    expect(await covered()).toEqual([[-48 * HOUR - 10 * MINUTE, 29 * DAY - MINUTE]]);
  });
});

test("behavior: a webhook that comes after the sweep is no new event", async () => {
  event("evt_1", -HOUR);
  await sweepEvents(world.deps);
  const row = {
    scope: PLATFORM_SCOPE,
    eventId: "evt_1",
    type: "charge.succeeded",
    apiVersion: null,
    createdAt: new Date(T - HOUR),
    objectId: null,
    objectType: null,
    idempotencyKey: null,
    requestId: null,
    body: null,
    thin: false,
    hopeless: null,
  };
  const input = { events: [row], via: "webhook", now: world.clock.now() } as const;
  expect(await insertEvents(world.pool, input)).toEqual(new Set());
  expect(await inbox()).toHaveLength(1);
});

describe("the beat", () => {
  const calm = {
    beatMs: 10 * MINUTE,
    previousMs: null,
    missed: 0,
    readsPerSweep: 1,
    allowed: 1_000_000n,
    used: 0n,
  };

  test("default: the configured beat, then slower while webhooks bring everything", () => {
    expect(nextSweepDelay(calm)).toBe(10 * MINUTE);
    expect(nextSweepDelay({ ...calm, previousMs: 10 * MINUTE })).toBe(20 * MINUTE);
    expect(nextSweepDelay({ ...calm, previousMs: 20 * MINUTE })).toBe(30 * MINUTE);
    expect(nextSweepDelay({ ...calm, previousMs: 30 * MINUTE })).toBe(30 * MINUTE);
  });

  test("behavior: faster at once after a miss, and never in a tight loop", () => {
    expect(nextSweepDelay({ ...calm, previousMs: 30 * MINUTE, missed: 1 })).toBe(2.5 * MINUTE);
    expect(nextSweepDelay({ ...calm, beatMs: SECOND, missed: 9 })).toBe(30 * SECOND);
  });

  test("behavior: the budget bounds it", () => {
    const small = { ...calm, allowed: 10_000n };
    // 40 % of 10,000 reads a month: 4,000 sweeps, one every 10.8 minutes.
    expect(nextSweepDelay(small)).toBe(10.8 * MINUTE);
    expect(nextSweepDelay({ ...small, missed: 1 })).toBe(5.4 * MINUTE);
    expect(nextSweepDelay({ ...small, readsPerSweep: 10 })).toBe(30 * MINUTE);
    expect(nextSweepDelay({ ...small, missed: 1, used: 9_000n })).toBe(30 * MINUTE);
  });

  test("behavior: a configured beat slower than the slowest is respected", () => {
    expect(nextSweepDelay({ ...calm, beatMs: HOUR })).toBe(HOUR);
  });
});
