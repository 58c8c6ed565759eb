// Goal: rows come back in the types that the rest relies on, and a lost connection is survived.
// Method: a real server; the connection is killed from the server's side.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openPool, toBigint } from "../../src/store/pool.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;
beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());

const NO_SUCH_SERVER = "postgres://nobody:nothing@127.0.0.1:1/none";

describe("openPool", () => {
  test("default", async () => {
    const found = await db.pool.query<Record<string, unknown>>(
      `select 9007199254740993::int8 as big,
              123456789012345678901234567890.00::numeric(78, 2) as num,
              '2026-01-02 03:04:05+02'::timestamptz as at,
              '{"a": [1, "2"]}'::jsonb as doc,
              7::int4 as small`,
    );
    expect(found.rows[0]).toEqual({
      big: 9_007_199_254_740_993n,
      num: "123456789012345678901234567890.00",
      at: new Date("2026-01-02T01:04:05Z"),
      doc: { a: [1, "2"] },
      small: 7,
    });
  });

  test("behavior: arrays keep exact values and nulls", async () => {
    const found = await db.pool.query<Record<string, unknown>>(
      `select '{9007199254740993,null}'::int8[] as big,
              '{9007199254740993.5,null}'::numeric[] as num`,
    );
    expect(found.rows[0]).toEqual({
      big: [9_007_199_254_740_993n, null],
      num: ["9007199254740993.5", null],
    });
  });

  test("behavior: a time without a zone stays text", async () => {
    const found = await db.pool.query<Record<string, unknown>>(
      `select '2026-01-02 03:04:05'::timestamp as at, '2026-01-02'::date as day`,
    );
    expect(found.rows[0]).toEqual({ at: "2026-01-02 03:04:05", day: "2026-01-02" });
  });

  test("behavior: the parsers of other pools stay as they are", () => {
    const parse = pg.types.getTypeParser(pg.types.builtins.INT8) as (text: string) => unknown;
    expect(parse("1")).toBe("1");
  });

  test("behavior: a connection killed while idle or checked out is replaced", async () => {
    const pool = openPool({ url: db.url, applicationName: "tallyd-killed", max: 2 });
    const killAll = `select pg_terminate_backend(pid) from pg_stat_activity
                      where application_name = 'tallyd-killed'`;
    await pool.query("select 1");
    await db.pool.query(killAll);
    const client = await pool.connect();
    await db.pool.query(killAll);
    // The server's notice arrives between two queries, when nobody waits for an answer.
    await expect.poll(() => client.query("select 1").catch(String)).toMatch(/Error/);
    client.release(true);
    await expect(pool.query("select 1 as one")).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test("error: a time that a Date cannot hold", async () => {
    await expect(db.pool.query(`select 'infinity'::timestamptz`)).rejects.toThrow(
      'timestamptz "infinity" cannot be read',
    );
  });

  test("error: no server", async () => {
    const pool = openPool({ url: NO_SUCH_SERVER, applicationName: "tallyd-test", max: 1 });
    await expect(pool.query("select 1")).rejects.toThrow("ECONNREFUSED");
    await pool.end();
  });
});

describe("toBigint", () => {
  test("default", () => {
    expect(toBigint("123456789012345678901234567890")).toBe(123456789012345678901234567890n);
  });

  test("behavior: zeros after the point, signs, numbers and bigints", () => {
    expect([toBigint("12.00"), toBigint("-3"), toBigint(4), toBigint(5n)]).toEqual([
      12n,
      -3n,
      4n,
      5n,
    ]);
  });

  test.each(["12.50", "NaN", "Infinity", "", "1e3", " 1", "0x10"])('error: "%s"', (value) => {
    expect(() => toBigint(value)).toThrow(RangeError);
  });

  test("error: a number that is not held exactly", () => {
    expect(() => toBigint(2 ** 53)).toThrow(RangeError);
    expect(() => toBigint(0.5)).toThrow(RangeError);
  });
});
