/**
 * Goal: an event is stored once, worked on until it is done, and forgotten late enough (B14, B15).
 * Method: the statements of src/store/inbox.ts, refetch.ts and tallies.ts against PostgreSQL.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import {
  claimEvents,
  countDueEvents,
  eventKey,
  failEvent,
  finishEvents,
  insertEvents,
  pruneEvents,
} from "../../src/store/inbox.ts";
import type { InboxEvent } from "../../src/store/inbox.ts";
import {
  claimRefetches,
  failRefetch,
  finishRefetches,
  markRefetchMissing,
  postponeRefetches,
  requestRefetch,
} from "../../src/store/refetch.ts";
import { addTallies, endStreaks, readTallies } from "../../src/store/tallies.ts";
import { withTx } from "../../src/store/tx.ts";
import { SCOPE, at } from "../sources/stripe/shapes.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;
const DAY = 86_400;

beforeAll(async () => {
  db = await createTestDb();
});
afterAll(async () => {
  await db.close();
});
beforeEach(async () => {
  await emptyTables(db.pool, ["tallyd.inbox", "tallyd.refetch", "tallyd.tally"]);
});

function inboxEvent(fields: Partial<InboxEvent> = {}): InboxEvent {
  return {
    scope: SCOPE,
    eventId: "evt_1",
    type: "charge.succeeded",
    apiVersion: "2026-10-28.endive",
    createdAt: at(0),
    objectId: "ch_1",
    objectType: "charge",
    idempotencyKey: null,
    requestId: null,
    body: '{"facts":[],"refetch":[]}',
    thin: false,
    hopeless: null,
    ...fields,
  };
}

async function insert(
  events: readonly InboxEvent[],
  options: { via?: "webhook" | "sweep"; second?: number } = {},
): Promise<string[]> {
  const fresh = await insertEvents(db.pool, {
    events,
    via: options.via ?? "webhook",
    now: at(options.second ?? 10),
  });
  return [...fresh];
}

async function row(): Promise<Record<string, unknown>> {
  const result = await db.pool.query<Record<string, unknown>>("select * from tallyd.inbox");
  expect(result.rows).toHaveLength(1);
  return result.rows[0] ?? {};
}

const key = { scope: SCOPE, eventId: "evt_1" };

describe("inserting", () => {
  test("default", async () => {
    expect(await insert([inboxEvent()])).toEqual([eventKey(key)]);
    expect(await row()).toMatchObject({
      event_id: "evt_1",
      status: "pending",
      via: "webhook",
      webhook_at: at(10),
      deliveries: 1,
      attempts: 0,
    });
  });

  test("behavior: equal events of one batch are one row with their deliveries", async () => {
    expect(await insert([inboxEvent(), inboxEvent(), inboxEvent()])).toHaveLength(1);
    expect(await insert([inboxEvent()])).toEqual([]);
    expect((await row())["deliveries"]).toBe(4);
  });

  test("behavior: the same id in two scopes is two events", async () => {
    expect(await insert([inboxEvent(), inboxEvent({ scope: "acct_c/test" })])).toHaveLength(2);
  });

  test("behavior: a sweep counts no delivery; a webhook after it is noted", async () => {
    await insert([inboxEvent()], { via: "sweep" });
    expect(await row()).toMatchObject({ via: "sweep", webhook_at: null, deliveries: 1 });
    expect(await insert([inboxEvent()], { via: "sweep" })).toEqual([]);
    await insert([inboxEvent()], { second: 20 });
    expect(await row()).toMatchObject({ via: "sweep", webhook_at: at(20), deliveries: 2 });
  });

  test("behavior: what is not read is remembered and never due", async () => {
    await insert([inboxEvent({ body: null })]);
    expect((await row())["status"]).toBe("ignored");
    expect(await countDueEvents(db.pool, { now: at(99), limit: 5 })).toBe(0);
  });

  test("error: a hopeless event is dead with its api_version", async () => {
    await insert([inboxEvent({ body: null, hopeless: "no id", apiVersion: "2031-01-01.x" })]);
    expect(await row()).toMatchObject({
      status: "dead",
      last_error: "no id (api_version 2031-01-01.x)",
    });
  });
});

describe("thin and snapshot twins", () => {
  const thin = inboxEvent({ type: "v1.charge.succeeded", thin: true, apiVersion: null });
  const twin = inboxEvent({ body: '{"facts":[],"refetch":[],"twin":true}' });

  test.each([
    ["thin first", [thin], [twin]],
    ["snapshot first", [twin], [thin]],
    ["in one batch", [thin, twin], []],
    ["in one batch, the other way", [twin, thin], []],
  ])("behavior: %s, the twin with the object stays", async (_name, first, second) => {
    await insert(first);
    await insert(second);
    expect(await row()).toMatchObject({
      type: "charge.succeeded",
      deliveries: 2,
      body: { twin: true },
      status: "pending",
      api_version: "2026-10-28.endive",
    });
  });

  test("behavior: a twin that comes after the thin one was applied is applied too", async () => {
    await insert([thin]);
    await finishEvents(db.pool, { events: [key], now: at(11) });
    await insert([twin]);
    expect((await row())["status"]).toBe("pending");
  });
});

describe("working", () => {
  test("behavior: rivals claim different events", async () => {
    const events = ["evt_1", "evt_2", "evt_3"].map((eventId) => inboxEvent({ eventId }));
    await insert(events);
    await withTx(db.pool, async (one) => {
      expect(await claimEvents(one, { now: at(20), limit: 2 })).toHaveLength(2);
      await withTx(db.pool, async (two) => {
        expect(await claimEvents(two, { now: at(20), limit: 5 })).toHaveLength(1);
      });
    });
  });

  test("behavior: done stays done when it is delivered again (B15)", async () => {
    await insert([inboxEvent()]);
    await finishEvents(db.pool, { events: [key], now: at(11) });
    await insert([inboxEvent()], { second: 20 });
    expect(await row()).toMatchObject({ status: "done", attempts: 1, deliveries: 2 });
    expect(await countDueEvents(db.pool, { now: at(99), limit: 5 })).toBe(0);
  });

  test("behavior: failures wait longer each time and end", async () => {
    await insert([inboxEvent()]);
    const pauses: number[] = [];
    for (let attempt = 1; attempt < 10; attempt += 1) {
      expect(await failEvent(db.pool, { ...key, error: "boom", now: at(0) })).toBe("error");
      pauses.push(((await row())["next_at"] as Date).getTime() - at(0).getTime());
    }
    expect(pauses.slice(0, 3)).toEqual([5000, 10_000, 20_000]);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_800_000);
    expect(await failEvent(db.pool, { ...key, error: "boom", now: at(0) })).toBe("dead");
    expect(await row()).toMatchObject({ attempts: 10, status: "dead" });
    expect(String((await row())["last_error"])).toContain("2026-10-28.endive");
    await insert([inboxEvent()], { second: 50 });
    expect(await row()).toMatchObject({ status: "error", next_at: at(50) });
  });

  test("behavior: a redelivery wakes a failed event at once (B15)", async () => {
    await insert([inboxEvent()]);
    await failEvent(db.pool, { ...key, error: "boom", now: at(11) });
    expect(await countDueEvents(db.pool, { now: at(12), limit: 5 })).toBe(0);
    await insert([inboxEvent()], { second: 12 });
    expect(await countDueEvents(db.pool, { now: at(12), limit: 5 })).toBe(1);
  });

  test("behavior: bodies go after 45 days, ids stay; what was ignored goes wholly", async () => {
    await insert([inboxEvent(), inboxEvent({ eventId: "evt_2", body: null })]);
    await insert([inboxEvent({ eventId: "evt_3" })]);
    await finishEvents(db.pool, { events: [key], now: at(11) });
    expect(await pruneEvents(db.pool, { now: at(44 * DAY) })).toBe(0);
    expect(await pruneEvents(db.pool, { now: at(46 * DAY) })).toBe(2);
    const rows = await db.pool.query<{ event_id: string; empty: boolean }>(
      "select event_id, body is null as empty from tallyd.inbox order by event_id",
    );
    expect(rows.rows).toEqual([
      { event_id: "evt_1", empty: true },
      { event_id: "evt_3", empty: false },
    ]);
  });
});

describe("refetching", () => {
  const request = { scope: SCOPE, objectId: "ch_1", reason: "unknown shape" };
  const ask = (second: number): Promise<void> =>
    requestRefetch(db.pool, { requests: [request, request], now: at(second) });
  const claim = (second: number): Promise<number> =>
    claimRefetches(db.pool, { scope: null, now: at(second), limit: 5 }).then((rows) => rows.length);

  test("default", async () => {
    await ask(10);
    const [claimed] = await claimRefetches(db.pool, { scope: SCOPE, now: at(10), limit: 5 });
    expect(claimed).toEqual({ ...request, attempts: 0, firstAt: at(10) });
    expect(await claim(11)).toBe(0);
    // Its fetcher died.
    expect(await claim(10 + 301)).toBe(1);
    await finishRefetches(db.pool, [request]);
    expect(await claim(10_000)).toBe(0);
  });

  test("behavior: asking again does not shorten the pause", async () => {
    await ask(10);
    await failRefetch(db.pool, { ...request, error: "not yet", now: at(10) });
    await ask(11);
    expect(await claim(11)).toBe(0);
    expect(await claim(12)).toBe(1);
  });

  test("behavior: a provider that cannot be asked costs no attempt", async () => {
    await ask(10);
    await postponeRefetches(db.pool, { keys: [request], until: at(60), error: "429" });
    expect(await claim(59)).toBe(0);
    const [claimed] = await claimRefetches(db.pool, { scope: null, now: at(60), limit: 1 });
    expect(claimed?.attempts).toBe(0);
  });

  test("behavior: given up after twelve attempts; the events are quarantined (B22)", async () => {
    const body = JSON.stringify({ facts: [], refetch: [{ id: "ch_1", reason: "unknown shape" }] });
    await insert([
      inboxEvent({ body, apiVersion: "2031-01-01.x" }),
      inboxEvent({ eventId: "evt_2" }),
    ]);
    await finishEvents(db.pool, { events: [key, { ...key, eventId: "evt_2" }], now: at(10) });
    await ask(10);
    for (let attempt = 1; attempt < 12; attempt += 1) {
      expect(await failRefetch(db.pool, { ...request, error: "shape", now: at(10) })).toBe(
        "pending",
      );
    }
    expect(await failRefetch(db.pool, { ...request, error: "shape", now: at(10) })).toBe("dead");
    const rows = await db.pool.query(
      "select event_id, status, last_error from tallyd.inbox order by event_id",
    );
    expect(rows.rows).toEqual([
      { event_id: "evt_1", status: "dead", last_error: "shape (api_version 2031-01-01.x)" },
      { event_id: "evt_2", status: "done", last_error: null },
    ]);
    // Something new is said about the object: it is worth a new ladder.
    await ask(20);
    expect(await claim(20)).toBe(1);
  });

  test("behavior: a denied id is not fetched again", async () => {
    await ask(10);
    await markRefetchMissing(db.pool, { ...request, error: "resource_missing" });
    expect(await claim(99_999)).toBe(0);
  });
});

describe("tallies", () => {
  const count = (recent: readonly number[], second = 10): Promise<void> =>
    addTallies(db.pool, [
      { name: "stale_valid", count: recent.length, lastAt: at(second), recent },
    ]);

  test("behavior: totals grow, streaks end, the last twenty values are kept", async () => {
    await count([1, 2, 3]);
    await count(
      Array.from({ length: 19 }, (_, index) => 400 + index),
      20,
    );
    const tally = (await readTallies(db.pool)).get("stale_valid");
    expect(tally).toMatchObject({ total: 22n, streak: 22n, lastAt: at(20) });
    expect(tally?.recent).toEqual([3, ...Array.from({ length: 19 }, (_, index) => 400 + index)]);
    await endStreaks(db.pool, ["stale_valid"]);
    expect((await readTallies(db.pool)).get("stale_valid")).toMatchObject({
      total: 22n,
      streak: 0n,
      recent: [],
    });
  });
});
