/**
 * Goal: what the inbox holds reaches the mirror once, and a poison event stops nobody (B14, B15).
 * Method: events of the real reader, inserted as the webhook route does, applied to PostgreSQL.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { silentLog } from "../../src/core/log.ts";
import { applyInbox } from "../../src/ingest/apply.ts";
import { readEvent } from "../../src/sources/stripe/read-event.ts";
import { insertEvents } from "../../src/store/inbox.ts";
import { SETTINGS, at, charge, event, paid, paymentIntent } from "../sources/stripe/shapes.ts";
import type { Json } from "../sources/stripe/shapes.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb();
  await db.pool.query(`
    create function public.refuse_poison() returns trigger language plpgsql as $$
      begin
        if new.charge_id = 'ch_poison' then
          raise exception 'poison';
        end if;
        return new;
      end $$;
    create trigger refuse_poison before insert on tallyd.charge
      for each row execute function public.refuse_poison();`);
});
afterAll(async () => {
  await db.close();
});
beforeEach(async () => {
  await emptyTables(db.pool, [
    "tallyd.inbox",
    "tallyd.refetch",
    "tallyd.charge",
    "tallyd.object_key",
    "tallyd.stripe_payment_intent",
    "tallyd.changed",
  ]);
});

async function deliver(raw: Json, second = 10): Promise<void> {
  const outcome = readEvent({ event: raw, settings: SETTINGS });
  if (outcome.kind !== "event") throw new Error(`read as ${outcome.kind}`);
  await insertEvents(db.pool, { events: [outcome.event], via: "webhook", now: at(second) });
}

const apply = (second: number, limit = 1000): ReturnType<typeof applyInbox> =>
  applyInbox({ pool: db.pool, clock: { now: () => at(second) }, log: silentLog }, { limit });

async function values(sql: string): Promise<unknown[]> {
  const result = await db.pool.query<{ value: unknown }>(sql);
  return result.rows.map((row) => row.value);
}

const inbox = (): Promise<unknown[]> =>
  values("select status || ' ' || attempts as value from tallyd.inbox order by event_id");

test("default", async () => {
  await deliver(event("payment_intent.succeeded", paid()));
  await deliver(event("charge.succeeded", charge(), { id: "evt_2" }));
  expect(await apply(11)).toEqual({ applied: 2, failed: 0, dead: 0, ignored: 0, left: 0 });
  expect(await inbox()).toEqual(["done 1", "done 1"]);
  expect(await values("select charge_id as value from tallyd.charge")).toEqual(["ch_1"]);
  expect(await values("select object_id as value from tallyd.object_key order by 1")).toEqual([
    "ch_1",
    "pi_1",
  ]);
  expect(await apply(12)).toEqual({ applied: 0, failed: 0, dead: 0, ignored: 0, left: 0 });
});

test("behavior: siblings are one charge, whatever came first (B14)", async () => {
  await deliver(event("charge.updated", charge(), { id: "evt_3", created: 1_700_000_020 }));
  await deliver(event("charge.succeeded", charge(), { id: "evt_2" }));
  await deliver(event("payment_intent.succeeded", paid()));
  await apply(30);
  expect(await values("select charge_id || ' ' || derived as value from tallyd.charge")).toEqual([
    "ch_1 false",
  ]);
});

test("behavior: an unbelievable object is done and waits to be fetched", async () => {
  await deliver(event("charge.succeeded", charge({ paid: false })));
  expect(await apply(11)).toMatchObject({ applied: 1 });
  expect(await values("select object_id || ': ' || reason as value from tallyd.refetch")).toEqual([
    "ch_1: charge says succeeded and paid: false",
  ]);
  expect(await values("select charge_id as value from tallyd.charge")).toEqual([]);
});

test("behavior: the limit leaves the rest due", async () => {
  for (const id of ["evt_1", "evt_2", "evt_3"]) {
    await deliver(event("payment_intent.created", paymentIntent(), { id }));
  }
  expect(await apply(11, 2)).toMatchObject({ applied: 2, left: 1 });
  expect(await apply(11, 2)).toMatchObject({ applied: 1, left: 0 });
});

test("behavior: a poison event fails alone and ends dead (B15)", async () => {
  await deliver(event("charge.succeeded", charge({ id: "ch_poison" }), { id: "evt_p" }));
  await deliver(event("charge.succeeded", charge()));
  expect(await apply(11)).toEqual({ applied: 1, failed: 1, dead: 0, ignored: 0, left: 0 });
  expect(await inbox()).toEqual(["done 1", "error 1"]);
  let dead = 0;
  for (let day = 1; day < 10; day += 1) dead += (await apply(day * 86_400)).dead;
  expect(dead).toBe(1);
  expect(await inbox()).toEqual(["done 1", "dead 10"]);
  expect(
    await values("select last_error as value from tallyd.inbox where status = 'dead'"),
  ).toEqual(["poison (api_version 2026-10-28.endive)"]);
});

test("behavior: a redelivered event is worked on again until it is done (B15)", async () => {
  await db.pool.query("alter table tallyd.charge add constraint closed check (false) not valid");
  await deliver(event("charge.succeeded", charge()));
  expect(await apply(11)).toMatchObject({ failed: 1 });
  expect(await inbox()).toEqual(["error 1"]);
  await db.pool.query("alter table tallyd.charge drop constraint closed");
  await deliver(event("charge.succeeded", charge()), 12);
  expect(await apply(12)).toMatchObject({ applied: 1 });
  expect(await inbox()).toEqual(["done 2"]);
  await deliver(event("charge.succeeded", charge()), 13);
  expect(await apply(13)).toMatchObject({ applied: 0, left: 0 });
  expect(await inbox()).toEqual(["done 2"]);
});

test("behavior: a stored form of another version of tallyd is fetched instead", async () => {
  await deliver(event("charge.succeeded", charge()));
  await db.pool.query(`update tallyd.inbox set body = '{"format": "older"}'`);
  expect(await apply(11)).toMatchObject({ applied: 1 });
  expect(await values("select object_id as value from tallyd.refetch")).toEqual(["ch_1"]);
});

test("behavior: rivals apply each event once", async () => {
  for (let index = 0; index < 60; index += 1) {
    const object = charge({ id: `ch_${String(index)}` });
    await deliver(event("charge.succeeded", object, { id: `evt_${String(index)}` }));
  }
  const runs = await Promise.all([apply(11), apply(11), apply(11)]);
  expect(runs.reduce((sum, run) => sum + run.applied, 0)).toBe(60);
  expect(new Set(await inbox())).toEqual(new Set(["done 1"]));
});
