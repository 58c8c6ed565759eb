/**
 * Goal: the mirror follows the team's table: nothing skipped, nothing invented, hostile rows aside.
 * Method: real tables in one database, the mirror in another, small pages to cross their borders.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { stripeScope } from "../../../src/core/scope.ts";
import { OVERLAP_MS, readChanges, sweep } from "../../../src/sources/local/pass.ts";
import type { PassDeps } from "../../../src/sources/local/pass.ts";
import { listFaults } from "../../../src/store/intents.ts";
import { coverage } from "../../../src/store/sources.ts";
import { createTestDb } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";
import { SEED_DDL, SHOP_DDL, SHOP_FILE, emptyMirror, passDeps, settingsOf } from "./bench-table.ts";

let team: TestDb;
let own: TestDb;

beforeAll(async () => {
  team = await createTestDb({ template: "empty" });
  own = await createTestDb();
});

afterAll(async () => {
  await team.close();
  await own.close();
});

beforeEach(async () => {
  await team.pool.query("drop schema if exists shop cascade");
  await team.pool.query("drop table if exists public.payment_intents cascade");
  await emptyMirror(own.pool);
});

type Row = Record<string, unknown>;

async function mirror(columns = "intent_id, state"): Promise<Row[]> {
  const order = "order by intent_id";
  return (await own.pool.query<Row>(`select ${columns} from tallyd.intent ${order}`)).rows;
}

async function changedIds(): Promise<string[]> {
  const found = await own.pool.query<{ id: string }>(
    "select id from tallyd.changed where kind = 'intent' and scope = '' order by id",
  );
  await own.pool.query("delete from tallyd.changed");
  return found.rows.map((row) => row.id);
}

async function seedTable(): Promise<void> {
  await team.pool.query(SEED_DDL);
}

async function addSeedRows(count: number, from = 1): Promise<void> {
  await team.pool.query(
    `insert into payment_intents (intent_id, account_id, amount, currency, idempotency_key)
     select 'inv-' || lpad(n::text, 6, '0'), 'shop', n, 'usd', 'key-' || n
       from generate_series($1::int, $2::int) as n`,
    [from, from + count - 1],
  );
}

async function deps(options: { pageRows?: number; file?: unknown } = {}): Promise<PassDeps> {
  return passDeps({
    team: team.pool,
    own: own.pool,
    settings: settingsOf({ file: options.file }),
    ...(options.pageRows === undefined ? {} : { pageRows: options.pageRows }),
  });
}

describe("readChanges", () => {
  test("default: the first pass is a sweep, later ones read what changed", async () => {
    await seedTable();
    await addSeedRows(3);
    const pass = await deps();
    expect(await readChanges(pass)).toMatchObject({ mode: "sweep", read: 3, changed: 3 });
    expect(await changedIds()).toEqual(["inv-000001", "inv-000002", "inv-000003"]);
    await team.pool.query(
      "update payment_intents set state = 'in_flight', updated_at = now() where amount = 2",
    );
    expect(await readChanges(pass)).toMatchObject({ mode: "changes", changed: 1 });
    expect(await changedIds()).toEqual(["inv-000002"]);
    expect((await mirror())[1]).toEqual({ intent_id: "inv-000002", state: "in_flight" });
  });

  test("behavior: an unchanged row is not written again", async () => {
    await seedTable();
    await addSeedRows(2);
    const pass = await deps();
    await sweep(pass);
    const before = await mirror("intent_id, xmin::text, ctid::text, seen_at");
    expect(await sweep(pass)).toMatchObject({ read: 2, changed: 0 });
    expect(await mirror("intent_id, xmin::text, ctid::text, seen_at")).toEqual(before);
  });

  test("behavior: fields of the documented row (integer as bigint, char(3) trimmed: case B33)", async () => {
    await seedTable();
    await team.pool.query(
      `insert into payment_intents values ('i1', 'acct_1', 2147483647, 'EU ', 'k1', 'recorded',
         'ch_1', '{"id":"ch_1"}', '2026-01-01 00:00:00.123456+00', '2026-01-01 01:00:00.654321+01')`,
    );
    await sweep(await deps({ file: { stripe: { accounts: ["acct_1"], livemode: false } } }));
    const [row] = await mirror(
      `*, created_at::text as created, updated_at::text as updated, recorded_as`,
    );
    expect(row).toMatchObject({
      amount: "2147483647",
      currency: "eu",
      rail: "stripe",
      scope: stripeScope("acct_1", false),
      kind: "charge",
      raw_state: "recorded",
      response_kind: "object",
      recorded_as: {
        amount: "2147483647",
        currency: "eu",
        account_id: "acct_1",
        charge_id: "ch_1",
        payee: null,
        asset: null,
      },
    });
    expect(row?.["created"]).toContain(".123456");
    expect(row?.["updated"]).toContain(".654321");
  });

  test("behavior: what a row said when first recorded is never overwritten", async () => {
    await seedTable();
    await addSeedRows(1);
    const pass = await deps();
    await sweep(pass);
    expect(await mirror("recorded_as")).toEqual([{ recorded_as: null }]);
    const set = "update payment_intents set updated_at = clock_timestamp(),";
    await team.pool.query(`${set} state = 'recorded', charge_id = 'ch_1'`);
    await readChanges(pass);
    await team.pool.query(`${set} amount = 999, charge_id = 'ch_2'`);
    await readChanges(pass);
    const [row] = await mirror("amount, charge_id, recorded_as");
    expect(row).toMatchObject({
      amount: "999",
      charge_id: "ch_2",
      recorded_as: { amount: "1", charge_id: "ch_1" },
    });
  });

  test("behavior: coverage reaches the snapshot, less the overlap for changes", async () => {
    await seedTable();
    const pass = await deps();
    const first = await readChanges(pass);
    const key = { source: "local", scope: "local" };
    expect(await coverage(own.pool, key)).toEqual([
      { from: new Date(0), to: new Date(first.provenTo) },
    ]);
    await own.pool.query(
      `update tallyd.source
          set covered = '{}', cursor = jsonb_build_object('readTo', now() - interval '1 hour')`,
    );
    const second = await readChanges(pass);
    const ranges = await coverage(own.pool, key);
    expect(ranges).toHaveLength(1);
    expect(ranges[0]?.to).toEqual(new Date(second.provenTo));
    const lag = Date.now() - new Date(second.provenTo).getTime();
    expect(lag).toBeGreaterThanOrEqual(OVERLAP_MS - 1_000);
    expect(lag).toBeLessThan(OVERLAP_MS + 60_000);
  });

  test("behavior: a row committed late, and one dated ahead, hide no others", async () => {
    await seedTable();
    const pass = await deps();
    await readChanges(pass);
    await addSeedRows(1);
    await team.pool.query("update payment_intents set updated_at = now() + interval '3 hours'");
    expect(await readChanges(pass)).toMatchObject({ changed: 1, faulty: 1 });
    await addSeedRows(1, 2);
    await team.pool.query(
      "update payment_intents set updated_at = now() - interval '90 seconds' where amount = 2",
    );
    expect(await readChanges(pass)).toMatchObject({ changed: 1 });
    expect(await mirror("intent_id")).toHaveLength(2);
  });

  test("behavior: a clock that was set back is swept over", async () => {
    await seedTable();
    const pass = await deps();
    await readChanges(pass);
    await own.pool.query(
      `update tallyd.source
          set cursor = jsonb_build_object('readTo', now() + interval '1 hour')`,
    );
    await addSeedRows(1);
    expect(await readChanges(pass)).toMatchObject({ mode: "sweep", changed: 1 });
    expect(await readChanges(pass)).toMatchObject({ mode: "changes" });
  });

  test("behavior: equal times of change across page borders skip nothing", async () => {
    await seedTable();
    await readChanges(await deps());
    await addSeedRows(57);
    const pass = await deps({ pageRows: 5 });
    expect(await readChanges(pass)).toMatchObject({ mode: "changes", read: 57, changed: 57 });
    await own.pool.query("truncate tallyd.intent, tallyd.source");
    expect(await sweep(pass)).toMatchObject({ read: 57, changed: 57, vanished: [] });
  });

  test("behavior: a hundred thousand rows, then a thousand changes", async () => {
    await seedTable();
    await addSeedRows(100_000);
    const pass = await deps();
    expect(await readChanges(pass)).toMatchObject({ read: 100_000, changed: 100_000 });
    await team.pool.query("update payment_intents set updated_at = now() - interval '1 day'");
    await own.pool.query("delete from tallyd.changed");
    await team.pool.query(
      "update payment_intents set state = 'in_flight', updated_at = now() where amount % 100 = 0",
    );
    expect(await readChanges(pass)).toMatchObject({ read: 1_000, changed: 1_000 });
  }, 180_000);
});

describe("sweep", () => {
  test("behavior: finds a change that did not touch the time of change", async () => {
    await seedTable();
    await addSeedRows(2);
    const pass = await deps();
    await readChanges(pass);
    await team.pool.query("update payment_intents set updated_at = now() - interval '1 day'");
    await sweep(pass);
    await team.pool.query("update payment_intents set amount = 77 where amount = 1");
    expect(await readChanges(pass)).toMatchObject({ changed: 0 });
    expect(await sweep(pass)).toMatchObject({ changed: 1 });
  });

  test("behavior: rows that are gone are marked, and unmarked when they return", async () => {
    await seedTable();
    await addSeedRows(12);
    const pass = await deps({ pageRows: 5 });
    await sweep(pass);
    await changedIds();
    await team.pool.query("delete from payment_intents where amount in (3, 12)");
    expect((await sweep(pass)).vanished).toEqual(["inv-000003", "inv-000012"]);
    expect(await changedIds()).toEqual(["inv-000003", "inv-000012"]);
    expect((await sweep(pass)).vanished).toEqual([]);
    await addSeedRows(1, 3);
    await readChanges(pass);
    const gone = await own.pool.query("select 1 from tallyd.intent where vanished_at is not null");
    expect(gone.rowCount).toBe(1);
  });

  test("behavior: hostile rows are set aside, told, and block nobody", async () => {
    await team.pool.query(
      `create table payment_intents (
         intent_id text, account_id text, amount numeric, currency text, idempotency_key text,
         state text, charge_id text, response_json text, created_at timestamptz,
         updated_at timestamptz)`,
    );
    await team.pool.query(
      `insert into payment_intents values
        ('good', 'a', 5, 'usd', 'k', 'in_flight', '', 'not json', now(), null),
        ('state', 'a', 5, 'usd', 'k', 'PAID!', null, null, now(), now()),
        ('negative', 'a', -5, 'usd', 'k', 'in_flight', null, null, now(), now()),
        ('fraction', 'a', 5.5, 'usd', 'k', 'in_flight', null, null, now(), now()),
        ('nan', 'a', 'NaN', 'usd', 'k', 'in_flight', null, null, now(), now()),
        ('null', null, null, null, 'k', null, null, null, null, now()),
        ('forever', 'a', 5, 'usd', 'k', 'in_flight', null, null, now(), 'infinity'),
        ('wide', 'a', 1e78, 'usd', 'k', 'in_flight', null, null, now(), now()),
        ('long', 'a', 5, 'usd', repeat('k', 601), 'in_flight', null, null, now(), now()),
        ('ahead', 'a', 5, 'usd', 'k', 'in_flight', null, null, now(), now() + interval '3 hours'),
        ('twin', 'a', 5, 'usd', 'k', 'in_flight', null, null, now(), now()),
        ('twin', 'a', 6, 'usd', 'k', 'in_flight', null, null, now(), now() + interval '1 second'),
        (repeat('x', 700), 'a', 5, 'usd', 'k', 'in_flight', null, null, now(), now()),
        (null, 'a', 5, 'usd', 'k', 'in_flight', null, null, now(), now())`,
    );
    const pass = await deps({ pageRows: 20 });
    const done = await sweep(pass);
    expect(await mirror("intent_id, amount, charge_id, response_kind")).toEqual([
      { intent_id: "ahead", amount: "5", charge_id: null, response_kind: "none" },
      { intent_id: "good", amount: "5", charge_id: null, response_kind: "other" },
      { intent_id: "twin", amount: "6", charge_id: null, response_kind: "none" },
    ]);
    const faults = await listFaults(own.pool, { limit: 50 });
    const told = new Map(faults.map((fault) => [fault.intentId.slice(0, 10), fault]));
    expect([...told.keys()].sort()).toEqual([
      ...["ahead", "forever", "fraction", "long", "nan", "negative", "null", "state", "twin"],
      ...["wide", "x".repeat(10)],
    ]);
    expect(told.get("state")?.faults).toEqual([
      { field: "state", seen: "PAID!", allowed: expect.stringContaining("in_flight") as string },
    ]);
    expect(told.get("null")?.faults.map((fault) => fault.field)).toEqual([
      ...["accountId", "amount", "currency", "state", "createdAt"],
    ]);
    expect(told.get("ahead")?.kept).toBe(true);
    expect(done.faults.at(-1)).toMatchObject({
      intentId: null,
      faults: [{ field: "intentId", seen: "nothing, in 1 rows" }],
    });
    await team.pool.query(
      "update payment_intents set state = 'recorded' where intent_id = 'state'",
    );
    await sweep(pass);
    const left = await listFaults(own.pool, { limit: 50 });
    expect(left.map((fault) => fault.intentId)).not.toContain("state");
  });

  test("behavior: a row that the mapped expressions cannot read blocks no other", async () => {
    await team.pool.query("create schema shop");
    await team.pool.query(
      `create table shop.p (id text primary key, j jsonb, s text, t timestamptz default now())`,
    );
    await team.pool.query(
      `insert into shop.p (id, j, s)
       select 'p' || lpad(n::text, 3, '0'),
              jsonb_build_object('cents', case when n in (1, 40, 41, 97) then 'many' else '5' end),
              'in_flight'
         from generate_series(1, 97) as n`,
    );
    const columns = {
      intentId: "id",
      accountId: "'x'",
      amount: "(j->>'cents')::bigint",
      currency: "'usd'",
      state: "s",
      createdAt: "t",
    };
    const file = { intents: { table: "shop.p", columns } };
    const done = await sweep(await deps({ file, pageRows: 30 }));
    expect(done).toMatchObject({ read: 97, changed: 93, faulty: 4 });
    expect(done.faults[0]).toMatchObject({ intentId: "p001", kept: false });
    expect(done.faults[0]?.faults[0]?.seen).toContain("many");
  });

  test("behavior: without a time of change every pass is a sweep", async () => {
    await seedTable();
    await team.pool.query("alter table payment_intents drop column updated_at");
    await addSeedRows(1);
    const pass = await deps();
    await readChanges(pass);
    expect(await readChanges(pass)).toMatchObject({ mode: "sweep" });
    expect(await mirror("created_at = updated_at as same")).toEqual([{ same: true }]);
  });

  test("behavior: the mapped table of the contract, with ids as numbers", async () => {
    await team.pool.query(SHOP_DDL);
    await team.pool.query(
      `insert into shop.payments values
         (9, 100, 'EUR', gen_random_uuid(), 'PENDING', null, null, '{"order":"o-9"}',
          now() at time zone 'Europe/Berlin', null),
         (10, 200, 'EUR', null, 'PAID', 'ch_1', '{"error":{"type":"card_error"}}', null,
          now() at time zone 'Europe/Berlin', now() at time zone 'Europe/Berlin')`,
    );
    const pass = await deps({ file: SHOP_FILE, pageRows: 1 });
    expect(await sweep(pass)).toMatchObject({ read: 2, changed: 2, faulty: 0 });
    expect(
      await mirror("intent_id, account_id, state, raw_state, reference, response_kind"),
    ).toEqual([
      {
        ...{ intent_id: "10", account_id: "shop", state: "recorded", raw_state: "PAID" },
        ...{ reference: null, response_kind: "error" },
      },
      {
        ...{ intent_id: "9", account_id: "shop", state: "in_flight", raw_state: "PENDING" },
        ...{ reference: "o-9", response_kind: "none" },
      },
    ]);
    await team.pool.query(
      `update shop.payments set status = 'UNKNOWN', modified = now() at time zone 'Europe/Berlin'`,
    );
    expect(await readChanges(pass)).toMatchObject({ mode: "changes", read: 2, changed: 2 });
    await team.pool.query("delete from shop.payments where order_no = 9");
    expect((await sweep(pass)).vanished).toEqual(["9"]);
  });
});
