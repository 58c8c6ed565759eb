/**
 * Goal: what deploy/ promises is true. Method: env.example against the catalogue of settings,
 * grants.sql on a real server with the roles it makes, metric names of the rules against the code.
 */
import { readFileSync } from "node:fs";

import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { CATALOG } from "../../src/config/catalog.ts";
import { migrate } from "../../src/store/migrate.ts";
import { openPool } from "../../src/store/pool.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

const read = (file: string): string =>
  readFileSync(new URL(`../../deploy/${file}`, import.meta.url), "utf8");

describe("env.example", () => {
  const known = CATALOG.map((entry) => entry.env).filter((name) => name !== null);
  const lines = read("env.example").split("\n");
  const named = lines.flatMap((line) => /^#?([A-Z][A-Z0-9_]*)=/.exec(line)?.[1] ?? []);

  it("default: names only settings that exist", () => {
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  it("behavior: a commented default is the real one", () => {
    const shown = lines.flatMap((line) => {
      const match = /^#([A-Z][A-Z0-9_]*)=(.+)$/.exec(line);
      const entry = CATALOG.find(({ env }) => env === match?.[1]);
      return match === null || (entry?.default ?? null) === null
        ? []
        : [[entry?.default, match[2]]];
    });
    const own = ["/var/lib/tallyd"];
    expect(shown.length).toBeGreaterThan(8);
    for (const [real, said] of shown) if (!own.includes(said ?? "")) expect(said).toBe(real);
  });
});

describe("grants.sql", () => {
  let db: TestDb;
  let owner: pg.Pool;

  beforeAll(async () => {
    db = await createTestDb({ template: "empty" });
    await db.pool.query(`
      create schema shop;
      create table shop.payments (
        intent_id text primary key, state text, charge_id text, amount bigint, updated_at timestamptz
      );
      insert into shop.payments values ('i1', 'reconciling', null, 100, now());`);
    const client = await db.pool.connect();
    await client.query("set tallyd.intents_table = 'shop.payments'");
    // Twice: it must be safe to run again.
    await client.query(read("grants.sql"));
    await client.query(read("grants.sql"));
    await client.query("alter role tallyd_owner password 'owner-test'");
    client.release(true);
    const url = new URL(db.url);
    url.username = "tallyd_owner";
    url.password = "owner-test";
    owner = openPool({ url: url.href, applicationName: "tallyd-test", max: 2 });
  });
  afterAll(async () => {
    await owner.end();
    await db.close();
  });

  it("default: the owner migrates, reads the table and writes what a resolution sets", async () => {
    await migrate(owner);
    const update = "update shop.payments set state = 'recorded', charge_id = 'ch_1'";
    expect((await owner.query(`${update} where state = 'reconciling'`)).rowCount).toBe(1);
  });

  it.each([
    "update shop.payments set amount = 1",
    "delete from shop.payments",
    "insert into shop.payments (intent_id) values ('i2')",
    "create table shop.other ()",
  ])("error: %s", async (statement) => {
    await expect(owner.query(statement)).rejects.toThrow("permission denied");
  });

  it("behavior: the reader sees what later migrations made, and writes nothing", async () => {
    const client = await db.pool.connect();
    await client.query("set role tallyd_reader");
    await client.query("select count(*) from tallyd.incident");
    await expect(client.query("delete from tallyd.incident")).rejects.toThrow("permission denied");
    client.release(true);
  });
});
