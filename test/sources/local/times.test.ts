/**
 * Goal: times without a zone mean what their writer meant, also in the hour a clock repeats
 * (case B45).
 * Method: the instants that PostgreSQL makes of wall times, with the clock set through a shadowed
 * now(); and whole passes over a table of wall times.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { readChanges, sweep } from "../../../src/sources/local/pass.ts";
import {
  instantSql,
  isoOfMicros,
  parseMicros,
  wallBoundSql,
  zoneSql,
} from "../../../src/sources/local/time-sql.ts";
import { listFaults } from "../../../src/store/intents.ts";
import { createTestDb } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";
import { SEED_DDL, emptyMirror, passDeps, settingsOf } from "./bench-table.ts";

let team: TestDb;
let own: TestDb;

beforeAll(async () => {
  team = await createTestDb({ template: "empty" });
  own = await createTestDb();
  // A clock that a test can set: schema `fake` stands before pg_catalog in its search path.
  await team.pool.query(
    `create schema fake;
     create function fake.now() returns timestamptz language sql stable
       as $$ select current_setting('fake.now')::timestamptz $$`,
  );
});

afterAll(async () => {
  await team.close();
  await own.close();
});

async function instant(input: { wall: string; zone: string; now: string }): Promise<string> {
  const client = await team.pool.connect();
  try {
    await client.query(`begin`);
    await client.query(`set local search_path to fake, pg_catalog`);
    await client.query(`select set_config('fake.now', $1, true)`, [input.now]);
    const sql = instantSql("$1::timestamp", zoneSql(input.zone));
    const found = await client.query<{ at: Date }>(`select ${sql} as at`, [input.wall]);
    return found.rows[0]?.at.toISOString() ?? "";
  } finally {
    await client.query("rollback");
    client.release();
  }
}

describe("instantSql", () => {
  test.each([
    ["summer", "2026-07-01 12:00", "2026-07-01T10:00:05Z", "2026-07-01T10:00:00.000Z"],
    ["winter", "2026-01-01 12:00", "2026-01-01T11:00:05Z", "2026-01-01T11:00:00.000Z"],
    ["first 02:30", "2026-10-25 02:30", "2026-10-25T00:31:00Z", "2026-10-25T00:30:00.000Z"],
    ["second 02:30", "2026-10-25 02:30", "2026-10-25T01:31:00Z", "2026-10-25T01:30:00.000Z"],
    [
      "an hour that never was",
      "2026-03-29 02:30",
      "2026-03-29T01:31:00Z",
      "2026-03-29T01:30:00.000Z",
    ],
    ["a time truly ahead", "2026-07-01 15:00", "2026-07-01T10:00:00Z", "2026-07-01T13:00:00.000Z"],
  ])("behavior: Europe/Berlin, %s", async (_, wall, now, expected) => {
    expect(await instant({ wall, zone: "Europe/Berlin", now })).toBe(expected);
  });

  test.each([
    ["+02:00", "2026-07-01T10:00:00.000Z"],
    ["-05:30", "2026-07-01T17:30:00.000Z"],
    ["UTC", "2026-07-01T12:00:00.000Z"],
  ])("behavior: offset %s is east of Greenwich when positive", async (zone, expected) => {
    const at = await instant({ wall: "2026-07-01 12:00", zone, now: "2026-07-02T00:00:00Z" });
    expect(at).toBe(expected);
  });

  test("behavior: the bound for an index is never later than a wall time of its instant", async () => {
    const found = await team.pool.query<{ wrong: bigint }>(
      `select count(*) as wrong
         from generate_series('2026-10-24T20:00Z'::timestamptz, '2026-10-25T06:00Z', '5 minutes') as a
        cross join generate_series(0, 480, 5) as later
        where (a + make_interval(mins => later)) at time zone 'Europe/Berlin'
              < ${wallBoundSql("a", "'Europe/Berlin'")}`,
    );
    expect(found.rows[0]?.wrong).toBe(0n);
  });
});

describe("microseconds", () => {
  test.each([
    ["1767225600.123456", "2026-01-01T00:00:00.123456Z"],
    ["1767225600", "2026-01-01T00:00:00.000000Z"],
    ["1767225600.5", "2026-01-01T00:00:00.500000Z"],
  ])("default: %s", (text, iso) => {
    expect(isoOfMicros(parseMicros(text) ?? 0n)).toBe(iso);
  });

  test.each(["Infinity", "-Infinity", "NaN", "-1.5", "999999999999999", ""])(
    "error: %j is no time",
    (text) => {
      expect(parseMicros(text)).toBeNull();
    },
  );
});

describe("a table of wall times", () => {
  const ddl = SEED_DDL.replaceAll("TIMESTAMPTZ NOT NULL DEFAULT now()", "timestamp not null");

  test("behavior: five minutes old is five minutes old, hours ahead is told", async () => {
    await team.pool.query("drop table if exists payment_intents");
    await team.pool.query(ddl);
    await emptyMirror(own.pool);
    await team.pool.query(
      `insert into payment_intents
       select id, 'a', 5, 'usd', id, 'in_flight', null, null, wall + shift, wall + shift
         from (values ('past', interval '-5 minutes'), ('ahead', interval '3 hours'))
                as r (id, shift)
        cross join (select now() at time zone interval '+02:00' as wall) as w`,
    );
    const settings = settingsOf({
      env: { INTENTS_TABLE: "payment_intents", INTENTS_TIME_ZONE: "+02:00" },
    });
    const pass = await passDeps({ team: team.pool, own: own.pool, settings });
    await sweep(pass);
    const ages = await own.pool.query<{ id: string; minutes: number }>(
      `select intent_id as id, round(extract(epoch from now() - updated_at) / 60)::int as minutes
         from tallyd.intent order by intent_id`,
    );
    expect(ages.rows).toEqual([
      { id: "ahead", minutes: -180 },
      { id: "past", minutes: 5 },
    ]);
    const faults = await listFaults(own.pool, { limit: 5 });
    expect(faults.map(({ intentId, kept }) => ({ intentId, kept }))).toEqual([
      { intentId: "ahead", kept: true },
    ]);
    await team.pool.query(
      `update payment_intents
          set state = 'recorded', updated_at = now() at time zone interval '+02:00'
        where intent_id = 'past'`,
    );
    expect(await readChanges(pass)).toMatchObject({ mode: "changes", changed: 1 });
  });
});
