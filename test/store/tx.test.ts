// Goal: a transaction commits whole, rolls back whole, and a lost race is run again.
// Method: a real server with rivals that are made to collide.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { sqlState, withTx } from "../../src/store/tx.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;
beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
  await db.pool.query("create table counter (id int primary key, value int not null)");
});
afterAll(() => db.close());
beforeEach(async () => {
  await db.pool.query("delete from counter");
  await db.pool.query("insert into counter values (1, 0)");
});

async function counterValue(): Promise<unknown> {
  const found = await db.pool.query<{ value: number }>("select value from counter where id = 1");
  return found.rows[0]?.value;
}

const increment = "update counter set value = value + 1 where id = 1";

describe("withTx", () => {
  test("default", async () => {
    const result = await withTx(db.pool, async (client) => {
      await client.query(increment);
      return "done";
    });
    expect(result).toBe("done");
    expect(await counterValue()).toBe(1);
  });

  test("behavior: four rivals at isolation serializable all commit", async () => {
    // Fewer rivals than attempts lose at a time: each round at least one of them commits.
    const rival = async (): Promise<void> => {
      await withTx(db.pool, (client) => client.query(increment), { isolation: "serializable" });
    };
    await Promise.all([rival(), rival(), rival(), rival()]);
    expect(await counterValue()).toBe(4);
  });

  test("behavior: the zone is UTC whatever the session says", async () => {
    const zone = await withTx(db.pool, async (client) => {
      const found = await client.query<{ zone: string }>(
        `select current_setting('TimeZone') as zone`,
      );
      return found.rows[0]?.zone;
    });
    expect(zone).toBe("UTC");
  });

  test("error: what fn throws rolls back and is thrown on", async () => {
    const failing = withTx(db.pool, async (client) => {
      await client.query(increment);
      throw new Error("planted");
    });
    await expect(failing).rejects.toThrow("planted");
    expect(await counterValue()).toBe(0);
  });

  test("error: a swallowed failure is not taken for a commit", async () => {
    const failing = withTx(db.pool, async (client) => {
      await client.query(increment);
      await client.query("select 1 / 0").catch(() => undefined);
    });
    await expect(failing).rejects.toThrow("was rolled back");
    expect(await counterValue()).toBe(0);
  });

  test("error: a write in a read-only transaction", async () => {
    const failing = withTx(db.pool, (client) => client.query(increment), { readOnly: true });
    await expect(failing).rejects.toSatisfy((error) => sqlState(error) === "25006");
  });

  test("error: a statement longer than its limit", async () => {
    const failing = withTx(db.pool, (client) => client.query("select pg_sleep(10)"), {
      statementTimeoutMs: 20,
    });
    await expect(failing).rejects.toSatisfy((error) => sqlState(error) === "57014");
  });

  test("error: a race lost five times is given up", async () => {
    let attempts = 0;
    const failing = withTx(db.pool, async (client) => {
      attempts += 1;
      await client.query(`do $$ begin raise exception 'x' using errcode = '40001'; end $$`);
    });
    await expect(failing).rejects.toSatisfy((error) => sqlState(error) === "40001");
    expect(attempts).toBe(5);
  });

  test("error: a connection that dies inside is not put back", async () => {
    const failing = withTx(db.pool, (client) =>
      client.query("select pg_terminate_backend(pg_backend_pid())"),
    );
    await expect(failing).rejects.toThrow();
    expect(await counterValue()).toBe(0);
  });
});
