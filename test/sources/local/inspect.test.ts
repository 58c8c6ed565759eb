/**
 * Goal: the team's table is found and understood, or refused with advice that says what to write.
 * Method: inspectLocal over real tables in an empty database.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { ConfigError, UnreadableError } from "../../../src/core/errors.ts";
import { inspectLocal } from "../../../src/sources/local/inspect.ts";
import type { LocalShape } from "../../../src/sources/local/shape.ts";
import { openPool } from "../../../src/store/pool.ts";
import { createTestDb } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";
import { SEED_DDL, SHOP_DDL, SHOP_FILE, settingsOf } from "./bench-table.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});

afterAll(async () => {
  await db.close();
});

beforeEach(async () => {
  await db.pool.query("drop schema if exists shop cascade");
  await db.pool.query("drop table if exists public.payment_intents cascade");
});

async function inspect(file?: unknown, env: Record<string, string> = {}): Promise<LocalShape> {
  return inspectLocal(db.pool, settingsOf({ file, env }).intents);
}

async function faultsOf(file?: unknown, env: Record<string, string> = {}): Promise<string[]> {
  try {
    await inspect(file, env);
  } catch (error) {
    if (error instanceof ConfigError) return [...error.faults];
    throw error;
  }
  return [];
}

describe("inspectLocal", () => {
  test("default: the documented table as printed", async () => {
    await db.pool.query(SEED_DDL);
    const shape = await inspect();
    expect(shape).toMatchObject({
      relation: '"public"."payment_intents"',
      kind: "table",
      mapped: false,
      idType: "text",
      amountMax: 2_147_483_647n,
      writeRefusal: null,
      writes: { state: "state", chargeId: "charge_id", response: "response_json" },
    });
    expect(shape.writes?.fingerprint).toBeNull();
    expect(shape.fields.reference).toBeNull();
    const amount = shape.remarks.find((remark) => remark.name === "amount column");
    expect(amount).toMatchObject({ status: "remark", seen: "integer, at most 2147483647" });
  });

  test("behavior: tallyd's own table is created where none is named, once, by many at a time", async () => {
    const shapes = await Promise.all(Array.from({ length: 8 }, () => inspect()));
    for (const shape of shapes)
      expect(shape.remarks.map((remark) => remark.name)).toEqual(["field repeatConfirmed"]);
    const columns = shapes[0]?.columns.map((column) => column.name) ?? [];
    for (const name of ["operation", "network", "valid_before", "metadata", "payment_id"]) {
      expect(columns).toContain(name);
    }
    const insert = `insert into payment_intents (intent_id, account_id, amount, currency, idempotency_key)
                    values ($1, 'a', 1e77, 'usd', $2)`;
    await db.pool.query(insert, ["a", "k"]);
    await expect(db.pool.query(insert, ["b", "k"])).rejects.toThrow(/unique/);
  });

  test("error: an absent table that was named is not created", async () => {
    await db.pool.query("create schema shop; create table shop.payment_intents (id int)");
    const faults = await faultsOf(undefined, { INTENTS_TABLE: "payments.payment_intents" });
    expect(faults).toEqual([expect.stringMatching(/^INTENTS_TABLE: .*shop\.payment_intents/)]);
  });

  test("behavior: creation under a given name when asked for", async () => {
    await db.pool.query("create schema shop");
    const env = { INTENTS_TABLE: 'shop."My Pay"', INTENTS_CREATE: "true" };
    expect((await inspect(undefined, env)).relation).toBe('"shop"."My Pay"');
  });

  test("behavior: the mapped table of the contract", async () => {
    await db.pool.query(SHOP_DDL);
    const shape = await inspect(SHOP_FILE);
    expect(shape).toMatchObject({
      relation: '"shop"."payments"',
      mapped: true,
      idType: "bigint",
      writes: { state: "status", chargeId: "stripe_id", response: "response", updatedAt: null },
    });
    expect(shape.spelling).toEqual({
      in_flight: "PENDING",
      recorded: "PAID",
      reconciling: "UNKNOWN",
    });
    expect(shape.remarks.map((remark) => remark.name)).toContain("state names");
  });

  test("error: times without a zone and no zone set", async () => {
    await db.pool.query(SHOP_DDL);
    const { timeZone, ...intents } = SHOP_FILE.intents;
    expect(timeZone).toBe("Europe/Berlin");
    const faults = await faultsOf({ intents });
    expect(faults).toEqual([
      expect.stringMatching(/intents\.columns\.createdAt: .*intents\.timeZone is not set/),
      expect.stringMatching(/intents\.columns\.updatedAt: .*INTENTS_TIME_ZONE/),
    ]);
  });

  test("error: every failing expression has its own fault", async () => {
    await db.pool.query(SHOP_DDL);
    const columns = {
      ...SHOP_FILE.intents.columns,
      amount: "sum(cents",
      currency: "nosuch",
      reference: "meta->>'order'; drop table shop.payments",
      payee: "(select 1 / 0 from nowhere)",
    };
    const faults = await faultsOf({ intents: { ...SHOP_FILE.intents, columns } });
    expect(faults).toHaveLength(4);
    expect(faults[1]).toMatch(
      /intents\.columns\.currency: saw nosuch \(PostgreSQL says: column "nosuch" does not exist\)/,
    );
    expect((await db.pool.query("select to_regclass('shop.payments') as t")).rows).toEqual([
      { t: "shop.payments" },
    ]);
  });

  test("error: an aggregate works alone and not beside the others", async () => {
    await db.pool.query(SHOP_DDL);
    for (const payee of ["count(*)", "xmin"]) {
      const columns = { ...SHOP_FILE.intents.columns, payee };
      const faults = await faultsOf({ intents: { ...SHOP_FILE.intents, columns } });
      expect(faults, payee).toEqual([expect.stringContaining("side by side")]);
    }
  });

  test("error: missing mandatory fields are all named with what to add", async () => {
    await db.pool.query(
      "create table payment_intents (intent_id text, amount int, currency text, status text)",
    );
    const faults = await faultsOf();
    expect(faults.map((fault) => fault.split(":")[0])).toEqual([
      "intents.columns.accountId",
      "intents.columns.state",
      "intents.columns.createdAt",
    ]);
    expect(faults[1]).toContain('add "state": "<SQL expression>" to intents.columns');
  });

  test.each([
    ["numeric(12,2)", '("amount" * 100)::bigint'],
    ["numeric(20,3)", '("amount" * 1000)::bigint'],
    ["double precision", '("amount" * 100)::bigint'],
    ["real", '("amount" * 100)::bigint'],
    ["money", '("amount" * 100)::bigint'],
  ])("error: amount as %s", async (type, advice) => {
    await db.pool.query(SEED_DDL.replace("INTEGER", type));
    const faults = await faultsOf();
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(advice);
    expect(faults[0]).toContain("JPY");
  });

  test.each(["bigint", "numeric(78,0)", "numeric(20)", "numeric", "smallint", "text"])(
    "behavior: amount as %s",
    async (type) => {
      await db.pool.query(SEED_DDL.replace("INTEGER", type));
      expect((await inspect()).fields.amount).not.toBeNull();
    },
  );

  test("error: a time that is a number", async () => {
    await db.pool.query(SEED_DDL.replace(/created_at.*,/, "created_at bigint not null,"));
    expect(await faultsOf()).toEqual([expect.stringContaining('to_timestamp("created_at")')]);
  });

  test("behavior: a foreign meaning of an optional column is not read and told", async () => {
    await db.pool.query(SEED_DDL);
    await db.pool.query("alter table payment_intents add column valid_before bigint");
    const shape = await inspect();
    expect(shape.fields.validBefore).toBeNull();
    const told = shape.remarks.find((remark) => remark.name === "column valid_before");
    expect(told?.advice).toContain('to_timestamp("valid_before")');
  });

  test("behavior: a view can be read, its writes are told where they cannot be", async () => {
    await db.pool.query(SEED_DDL.replace("payment_intents", "payments"));
    await db.pool.query("create view payment_intents as select * from payments");
    expect(await inspect()).toMatchObject({ kind: "view", writeRefusal: null });
    await db.pool.query("drop view payment_intents");
    await db.pool.query("create materialized view payment_intents as select * from payments");
    const shape = await inspect();
    expect(shape.writeRefusal).toContain("materialized view");
    await db.pool.query("drop materialized view payment_intents; drop table payments");
  });

  test("behavior: no mapping of writes, nothing is written", async () => {
    await db.pool.query(SHOP_DDL);
    const { write, ...intents } = SHOP_FILE.intents;
    expect(write.state).toBe("status");
    expect((await inspect({ intents })).writeRefusal).toContain("without intents.write");
  });

  test("error: a write column that is not there", async () => {
    await db.pool.query(SHOP_DDL);
    const intents = { ...SHOP_FILE.intents, write: { state: "lower(status)" } };
    expect(await faultsOf({ intents })).toEqual([
      expect.stringMatching(/^intents\.write\.state: saw "lower\(status\)"; allowed: a column: /),
    ]);
  });

  test("error: a fault of the mapping stays one, whatever its words", async () => {
    await db.pool.query(SHOP_DDL);
    const columns = { ...SHOP_FILE.intents.columns, reference: "connect_timeout" };
    expect(await faultsOf({ intents: { ...SHOP_FILE.intents, columns } })).toEqual([
      expect.stringMatching(/^intents\.columns\.reference: saw connect_timeout/),
    ]);
  });

  test("error: a database that does not answer", async () => {
    const dead = openPool({ url: "postgres://127.0.0.1:1/x", applicationName: "test", max: 1 });
    const failure = inspectLocal(dead, settingsOf({}).intents);
    await expect(failure).rejects.toBeInstanceOf(UnreadableError);
    await dead.end();
  });
});
