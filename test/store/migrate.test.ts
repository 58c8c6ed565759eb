// Goal: migrations land once, in order, unchanged, whoever else migrates; views follow the files.
// Method: folders of small SQL files written by each test, on an empty database of its own.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { MigrationError, SchemaNewerError } from "../../src/store/errors.ts";
import { migrate, schemaState } from "../../src/store/migrate.ts";
import { packageSqlDir } from "../../src/store/sql-files.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;
let sqlDir: string;

beforeEach(async () => {
  db = await createTestDb({ template: "empty" });
  sqlDir = await mkdtemp(path.join(os.tmpdir(), "tallyd-sql-"));
  await put("migrations/0001_first.sql", "create table tallyd.first (id int);");
  await put("migrations/0002_second.sql", "create table second (id int);");
});
afterEach(async () => {
  await db.close();
  await rm(sqlDir, { recursive: true });
});

async function put(name: string, text: string): Promise<void> {
  const file = path.join(sqlDir, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}

async function one(statement: string): Promise<unknown> {
  const found = await db.pool.query<{ value: unknown }>(statement);
  return found.rows[0]?.value;
}

describe("migrate", () => {
  test("default", async () => {
    expect(await schemaState(db.pool)).toEqual({ current: 0, landed: [] });
    const first = await migrate(db.pool, { sqlDir });
    expect(first).toEqual({ applied: ["0001_first.sql", "0002_second.sql"], current: 2 });
    expect(await migrate(db.pool, { sqlDir })).toEqual({ applied: [], current: 2 });
    const state = await schemaState(db.pool);
    expect(state.landed.map((row) => row.name)).toEqual(["0001_first.sql", "0002_second.sql"]);
    expect(await one("select to_regclass('tallyd.second')::text as value")).toBe("tallyd.second");
  });

  test("behavior: the migrations of the package apply", async () => {
    const result = await migrate(db.pool, { sqlDir: packageSqlDir() });
    expect(result.current).toBeGreaterThan(0);
  });

  test("behavior: of twenty migrators at once each migration lands once", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, () => migrate(db.pool, { sqlDir })),
    );
    expect(results.flatMap((result) => result.applied).sort()).toEqual([
      "0001_first.sql",
      "0002_second.sql",
    ]);
    expect(results.every((result) => result.current === 2)).toBe(true);
  });

  test("behavior: other line ends are no edit", async () => {
    await put("migrations/0003_lines.sql", "select 1;\nselect 2;\n");
    await migrate(db.pool, { sqlDir });
    await put("migrations/0003_lines.sql", "select 1;\r\nselect 2;\r\n");
    await expect(migrate(db.pool, { sqlDir })).resolves.toMatchObject({ applied: [] });
  });

  test("behavior: a failed migration leaves the earlier ones and nothing of itself", async () => {
    await put("migrations/0003_third.sql", "create table third (id int); select 1 / 0;");
    await expect(migrate(db.pool, { sqlDir })).rejects.toThrow(/0003_third\.sql failed.*zero/);
    expect((await schemaState(db.pool)).current).toBe(2);
    expect(await one("select to_regclass('tallyd.third') as value")).toBeNull();
    await put("migrations/0003_third.sql", "create table third (id int);");
    expect((await migrate(db.pool, { sqlDir })).applied).toEqual(["0003_third.sql"]);
  });

  test("behavior: a role without the right to create schemas may use a given one", async () => {
    const role = "tallyd_test_guest";
    await db.pool.query(`drop role if exists ${role}`);
    await db.pool.query(`create role ${role}; create schema tallyd authorization ${role};`);
    await db.pool.query(`do $$ begin
      execute format('revoke create on database %I from public', current_database());
      execute format('alter database %I set role = ${role}', current_database());
    end $$`);
    await db.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`);
    await db.pool.query(`set role ${role}`);
    await expect(migrate(db.pool, { sqlDir })).resolves.toMatchObject({ current: 2 });
    await db.pool.query("reset role");
    await db.pool.query(`drop owned by ${role}; drop role ${role};`);
  });

  test("error: an edited landed migration is named", async () => {
    await migrate(db.pool, { sqlDir });
    await put("migrations/0001_first.sql", "create table tallyd.first (id bigint);");
    await expect(migrate(db.pool, { sqlDir })).rejects.toThrow("0001_first.sql was edited");
  });

  test("error: a landed migration whose file is gone", async () => {
    await migrate(db.pool, { sqlDir });
    await rm(path.join(sqlDir, "migrations/0001_first.sql"));
    await expect(migrate(db.pool, { sqlDir })).rejects.toThrow("0001_first.sql has landed");
  });

  test("error: a late migration below the current version", async () => {
    await put("migrations/0004_fourth.sql", "select 1;");
    await migrate(db.pool, { sqlDir });
    await put("migrations/0003_third.sql", "select 1;");
    await expect(migrate(db.pool, { sqlDir })).rejects.toThrow("0003_third.sql is older");
  });

  test.each([
    ["", false],
    ["--! breaking\n", true],
  ])('error: a schema newer than this program (header "%s")', async (header, breaking) => {
    await put("migrations/0003_third.sql", `${header}select 1;`);
    await migrate(db.pool, { sqlDir });
    await rm(path.join(sqlDir, "migrations/0003_third.sql"));
    const refused = migrate(db.pool, { sqlDir });
    await expect(refused).rejects.toBeInstanceOf(SchemaNewerError);
    await expect(refused).rejects.toMatchObject({ current: 3, known: 2, breaking });
  });

  test.each([
    ["migrations/3_short.sql", "select 1;", "NNNN_noun.sql"],
    ["migrations/0002_again.sql", "select 1;", "same number"],
    ["migrations/0003_header.sql", "--! no-transaction\nselect 1;", "is unknown"],
    ["migrations/0003_commit.sql", "select 1; commit; select 2;", "holds a commit"],
  ])("error: %s", async (name, text, message) => {
    await put(name, text);
    const refused = migrate(db.pool, { sqlDir });
    await expect(refused).rejects.toBeInstanceOf(MigrationError);
    await expect(refused).rejects.toThrow(message);
  });

  test("error: a folder without migrations", async () => {
    await rm(path.join(sqlDir, "migrations"), { recursive: true });
    await expect(migrate(db.pool, { sqlDir })).rejects.toBeInstanceOf(MigrationError);
    await mkdir(path.join(sqlDir, "migrations"));
    await expect(migrate(db.pool, { sqlDir })).rejects.toThrow("holds no migration");
  });
});

describe("views", () => {
  const shout = `create function shout(word text) returns text language sql immutable
                   return upper(word);`;

  beforeEach(async () => {
    await put("views/10_base.sql", `${shout} create view base as select shout('a') as value;`);
    await put("views/20_top.sql", "create view top as select value from base;");
  });

  test("default", async () => {
    await migrate(db.pool, { sqlDir });
    expect(await one("select value from tallyd.top")).toBe("A");
  });

  test("behavior: changed files rebuild views and functions that lean on each other", async () => {
    await migrate(db.pool, { sqlDir });
    await put(
      "views/10_base.sql",
      `${shout.replace("word text", "word text, times int default 2")}
       create view base as select shout('b') as value, 1 as more;
       create function tops() returns setof base language sql return (select b from base b);`,
    );
    await put("views/20_top.sql", "create materialized view top as select value from tops();");
    await migrate(db.pool, { sqlDir });
    expect(await one("select value from tallyd.top")).toBe("B");
    await rm(path.join(sqlDir, "views"), { recursive: true });
    await migrate(db.pool, { sqlDir });
    expect(
      await one(`select count(*)::int as value from pg_proc
                       where pronamespace = 'tallyd'::regnamespace`),
    ).toBe(0);
  });

  test("behavior: a migration may change what a view leans on", async () => {
    await put("views/20_top.sql", "create view top as select id from first;");
    await migrate(db.pool, { sqlDir });
    await put("migrations/0003_rename.sql", "alter table first drop column id, add name text;");
    await put("views/20_top.sql", "create view top as select name from first;");
    expect((await migrate(db.pool, { sqlDir })).applied).toEqual(["0003_rename.sql"]);
    expect(await one("select count(name)::int as value from tallyd.top")).toBe(0);
  });

  test("behavior: a function of a migration survives the rebuild", async () => {
    await put("migrations/0003_keep.sql", shout.replaceAll("shout", "keep"));
    await migrate(db.pool, { sqlDir });
    await put("views/20_top.sql", "create view top as select 1 as value;");
    await migrate(db.pool, { sqlDir });
    expect(await one("select tallyd.keep('x') as value")).toBe("X");
  });

  test("behavior: a view changed by hand is put right", async () => {
    await migrate(db.pool, { sqlDir });
    await db.pool.query("create or replace view tallyd.top as select 'forged' as value");
    await migrate(db.pool, { sqlDir });
    expect(await one("select value from tallyd.top")).toBe("A");
  });

  test("behavior: current views are left alone, so a long reader stalls no start", async () => {
    await migrate(db.pool, { sqlDir });
    const reader = await db.pool.connect();
    await reader.query("begin; select value from tallyd.top");
    await expect(migrate(db.pool, { sqlDir })).resolves.toMatchObject({ applied: [] });
    await reader.query("rollback");
    reader.release();
  });

  test("behavior: what was granted on views outlives their rebuild", async () => {
    const role = `view_reader_${String(process.pid)}`;
    const may = (view: string, column: string, right = "select"): Promise<unknown> =>
      one(`select has_column_privilege('${role}', 'tallyd.${view}', '${column}', '${right}')
             as value`);
    await put("views/20_top.sql", "create view top as select id from first;");
    await put("views/21_two.sql", "create view two as select 1 as a, 2 as b;");
    await migrate(db.pool, { sqlDir });
    await db.pool.query(`create role ${role}`);
    try {
      await db.pool.query(`grant select on tallyd.top to ${role} with grant option`);
      await db.pool.query(`grant select (a) on tallyd.two to ${role}`);
      // Dropped by the migration's transaction, built by a later one; the second view loses b.
      await put("migrations/0003_name.sql", "alter table first add name text;");
      await put("views/20_top.sql", "create view top as select id, name from first;");
      await put("views/21_two.sql", "create view two as select 3 as c, 1 as a;");
      expect((await migrate(db.pool, { sqlDir })).applied).toEqual(["0003_name.sql"]);
      expect(await may("top", "name")).toBe(true);
      expect(await may("top", "name", "select with grant option")).toBe(true);
      expect(await may("two", "a")).toBe(true);
      expect(await may("two", "c")).toBe(false);
      expect(await one("select count(*)::int as value from tallyd.derived_grant")).toBe(0);
      // A rebuild alone, and a view that is gone for good.
      await put("views/20_top.sql", "create view top as select name from first;");
      await rm(path.join(sqlDir, "views/21_two.sql"));
      await migrate(db.pool, { sqlDir });
      expect(await may("top", "name")).toBe(true);
    } finally {
      await db.pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });

  describe("views of others, built on ours", () => {
    beforeEach(async () => {
      await put("views/20_top.sql", "create view top as select id from first;");
      await migrate(db.pool, { sqlDir });
      await db.pool.query(`create schema board; create table board.note (id integer, text text);
        insert into board.note values (1, 'mine'); insert into tallyd.first (id) values (1)`);
      await db.pool.query(`create view board.low with (security_barrier) as
        select t.id, n.text from tallyd.top t join board.note n using (id)`);
      await db.pool.query("create view board.high as select text from board.low, tallyd.top");
      await db.pool.query("comment on view board.high is $$for the 'board'$$");
      await db.pool.query("grant select on board.high to public");
    });
    afterEach(() => db.pool.query("drop schema board cascade"));

    const options = "select array_to_string(reloptions, ',') as value from pg_class";

    test("behavior: come back with what was said about them", async () => {
      await put("migrations/0003_name.sql", "alter table first add name text;");
      await put("views/20_top.sql", "create view top as select name, id from first;");
      await migrate(db.pool, { sqlDir });
      expect(await one("select text as value from board.high")).toBe("mine");
      expect(
        await one("select has_table_privilege('public', 'board.high', 'select') as value"),
      ).toBe(true);
      expect(await one("select obj_description('board.high'::regclass) as value")).toBe(
        "for the 'board'",
      );
      expect(await one(`${options} where oid = 'board.low'::regclass`)).toBe(
        "security_barrier=true",
      );
      expect(await one("select count(*)::int as value from tallyd.derived_dependent")).toBe(0);
    });

    test("error: one that does not fit any more stops the upgrade and stays as it was", async () => {
      await put("views/20_top.sql", "create view top as select id + 1 as other from first;");
      await expect(migrate(db.pool, { sqlDir })).rejects.toThrow(/board\.low.* does not fit/);
      expect(await one("select text as value from board.high")).toBe("mine");
    });

    test("error: what only a person can bring back stops it before anything is dropped", async () => {
      await db.pool.query("create materialized view board.still as select id from tallyd.top");
      await put("migrations/0003_name.sql", "alter table first add name text;");
      await expect(migrate(db.pool, { sqlDir })).rejects.toThrow(
        "board.still is built on tallyd's views",
      );
      expect(await one("select text as value from board.high")).toBe("mine");
      await db.pool.query("drop materialized view board.still");
      expect((await migrate(db.pool, { sqlDir })).applied).toEqual(["0003_name.sql"]);
    });
  });

  test("error: a broken view is named", async () => {
    await put("views/30_bad.sql", "create view bad as select nothing from nowhere;");
    await expect(migrate(db.pool, { sqlDir })).rejects.toThrow("sql/views/30_bad.sql failed");
  });
});
