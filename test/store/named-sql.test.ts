/** Named statements against real PostgreSQL: what a connection keeps of them must not go stale. */
import { afterAll, beforeAll, expect, test } from "vitest";

import { BugError } from "../../src/core/errors.ts";
import { bindNames, planByKeys, runNamed } from "../../src/store/named-sql.ts";
import { withTx } from "../../src/store/tx.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());

const PLANS = "select count(*)::int as plans from pg_prepared_statements where statement = $1";

test("default: a name used twice is one parameter, and the plan is kept for the connection", async () => {
  const sql = bindNames("select :'a'::int + :'b'::int * :'a'::int as sum");
  expect(sql.names).toEqual(["a", "b"]);
  const client = await db.pool.connect();
  try {
    expect(await runNamed(client, sql, { a: 2, b: 3 })).toEqual([{ sum: 8 }]);
    expect(await runNamed(client, sql, { a: 3, b: 3 })).toEqual([{ sum: 12 }]);
    expect((await client.query(PLANS, [sql.text])).rows).toEqual([{ plans: 1 }]);
  } finally {
    client.release();
  }
});

test("error: a parameter that was not given", async () => {
  await expect(runNamed(db.pool, bindNames("select :'a'"), { b: 1 })).rejects.toThrow(BugError);
});

test("behavior: a view that is built anew is read anew, rows and all", async () => {
  const sql = bindNames("select n from kept where n = any (:'ids'::int[]) order by n");
  const read = (): Promise<unknown> =>
    withTx(db.pool, async (tx) => {
      await planByKeys(tx);
      return runNamed(tx, sql, { ids: [1, 2, 3] });
    });
  await db.pool.query("create view kept as select n from generate_series(1, 2) as n");
  expect(await read()).toEqual([{ n: 1 }, { n: 2 }]);
  await db.pool.query(
    "drop view kept; create view kept as select n from generate_series(2, 9) as n",
  );
  expect(await read()).toEqual([{ n: 2 }, { n: 3 }]);
});

test("behavior: plans go by key inside such a transaction and are free outside of it", async () => {
  const client = await db.pool.connect();
  const asked =
    "select current_setting('plan_cache_mode') as mode, current_setting('enable_seqscan') as seq";
  try {
    await client.query("begin");
    await planByKeys(client);
    expect((await client.query(asked)).rows).toEqual([{ mode: "force_generic_plan", seq: "off" }]);
    await client.query("commit");
    expect((await client.query(asked)).rows).toEqual([{ mode: "auto", seq: "on" }]);
  } finally {
    client.release();
  }
});
