/** Silence is never health. Cases B05, B15, B23, B25, B26. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

const MINUTE = 60_000;

async function source(
  name: string,
  input: { okAgeMs?: number; failures?: number; code?: string; cursor?: unknown },
): Promise<void> {
  const failing = (input.failures ?? 0) > 0;
  const okAt = new Date(world.now.getTime() - (input.okAgeMs ?? 0));
  await world.pool.query(
    `insert into tallyd.source (source, scope, cursor, last_ok_at, failures, failing_since,
       last_error, last_error_code)
     values ($1, 'platform/test', $2, $3, $4, $5, $6, $7)
     on conflict (source, scope) do update
       set last_ok_at = excluded.last_ok_at, failures = excluded.failures,
           failing_since = excluded.failing_since, cursor = excluded.cursor`,
    [
      name,
      JSON.stringify(input.cursor ?? {}),
      okAt,
      input.failures ?? 0,
      failing ? okAt : null,
      failing ? "page 2: 429" : null,
      failing ? (input.code ?? "rate_limit") : null,
    ],
  );
}

async function gaps(): Promise<(string | null)[]> {
  const findings = await world.judgeSources();
  return findings.filter((f) => f.code === "coverage_gap").map((f) => f.basis);
}

test("default: a list that failed three times in a row, until it is read again (B26)", async () => {
  await source("stripe.charges", { failures: 2 });
  expect(await gaps()).toEqual([]);
  await source("stripe.charges", { failures: 3 });
  expect(await world.judgeSources()).toMatchObject([
    { code: "coverage_gap", severity: "critical", basis: "failing", scope: "platform/test" },
  ]);
  await source("stripe.charges", { failures: 0 });
  expect(await gaps()).toEqual([]);
});

test("behavior: a refused key is not blindness but configuration", async () => {
  await source("stripe.charges", { failures: 5, code: "auth" });
  expect(await gaps()).toEqual([]);
});

test("behavior: a source that stands still", async () => {
  await source("stripe.events", { okAgeMs: 59 * MINUTE });
  expect(await gaps()).toEqual([]);
  await source("stripe.events", { okAgeMs: 61 * MINUTE });
  expect(await gaps()).toEqual(["standing"]);
});

test("behavior: events that will be deleted before they are read, and are not yet", async () => {
  const DAY = 24 * 60 * MINUTE;
  await source("stripe.events", { okAgeMs: 25 * DAY, failures: 9, code: "auth" });
  expect(await gaps()).toEqual([]);
  await source("stripe.events", { okAgeMs: 25 * DAY + MINUTE, failures: 9, code: "auth" });
  const [found] = (await world.judgeSources()).filter((f) => f.basis === "cliff");
  expect(found).toMatchObject({ code: "coverage_gap", severity: "critical" });
  expect(found?.summary).toContain("deletes what came since from 2026-06-06 11:59 UTC on");
  // What was lost is told as a hole, once it is read again.
  await source("stripe.events", { okAgeMs: 31 * DAY, failures: 9, code: "auth" });
  expect(await gaps()).toEqual([]);
});

test("behavior: events that were deleted unread, until the lists fill the hole (B25 c)", async () => {
  const hole = { from: "2026-04-22T00:00:00.000Z", to: "2026-05-02T00:00:00.000Z" };
  await source("stripe.events", { cursor: { holes: [{ ...hole, filledAt: null }] } });
  expect(await gaps()).toEqual(["hole"]);
  const filledAt = "2026-06-01T11:00:00.000Z";
  await source("stripe.events", { cursor: { holes: [{ ...hole, filledAt }] } });
  expect(await gaps()).toEqual([]);
});

test("behavior: webhooks are silent while events exist (B05)", async () => {
  const startedAt = new Date(world.now.getTime() - 600 * MINUTE).toISOString();
  await source("stripe.events", { cursor: { startedAt } });
  const event = async (id: string, ageMs: number, webhook: boolean): Promise<void> => {
    const at = new Date(world.now.getTime() - ageMs);
    await world.pool.query(
      `insert into tallyd.inbox (scope, event_id, type, created_at, via, received_at, webhook_at)
       values ('platform/test', $1, 'charge.succeeded', $2, $3, $2, $4)`,
      [id, at, webhook ? "webhook" : "sweep", webhook ? at : null],
    );
  };
  await event("evt_1", 120 * MINUTE, true);
  await event("evt_2", 10 * MINUTE, false);
  expect(await gaps()).toEqual([]);
  await event("evt_3", 60 * MINUTE, false);
  expect(await gaps()).toEqual(["webhooks_silent"]);
  await event("evt_4", 5 * MINUTE, true);
  expect(await gaps()).toEqual([]);
});

test("behavior: dead letters are told once, whatever their number (B15)", async () => {
  await world.pool.query(
    `insert into tallyd.inbox (scope, event_id, type, created_at, via, status, last_error)
     select 'platform/test', 'evt_' || n, 'charge.succeeded', $1, 'webhook', 'dead', 'unknown shape'
       from generate_series(1, 30) as n`,
    [world.now],
  );
  const findings = await world.judgeSources();
  expect(findings).toMatchObject([
    { basis: "dead_letters", evidence: { count: 30, unfetched: 0 } },
  ]);
  expect(findings[0]?.advice).toContain("resend the events");
  expect(findings[0]?.advice).not.toContain("by id");
});

test("behavior: dead letters whose object could not be fetched either say so (B22)", async () => {
  await world.pool.query(
    `insert into tallyd.inbox (scope, event_id, type, created_at, via, status, last_error, object_id)
     values ('platform/test', 'evt_1', 'charge.updated', $1, 'webhook', 'dead', 'no status', 'ch_1')`,
    [world.now],
  );
  await world.pool.query(
    `insert into tallyd.refetch (scope, object_id, reason, status)
     values ('platform/test', 'ch_1', 'no status', 'dead')`,
  );
  const [found] = await world.judgeSources();
  expect(found).toMatchObject({
    basis: "dead_letters",
    evidence: { count: 1, unfetched: 1, objects: ["ch_1"] },
  });
  expect(found?.advice).toMatch(/read by id as well, and that could not be used/);
  await world.pool.query("truncate tallyd.refetch");
});

test("behavior: objects that their provider denies (B23 variant)", async () => {
  await world.payment({ id: "pi_1", status: "succeeded" });
  await world.pool.query("update tallyd.stripe_payment_intent set missing_since = $1", [world.now]);
  expect(await gaps()).toEqual(["denied"]);
});
