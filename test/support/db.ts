import pg from "pg";
import type { Pool } from "pg";
import { inject } from "vitest";

import { openPool } from "../../src/store/pool.ts";
import { ownName, withDatabase } from "./test-server.ts";

/** A database of one test file's own. */
export interface TestDb {
  readonly url: string;
  readonly pool: Pool;
  /** Ends the pool and drops the database. */
  readonly close: () => Promise<void>;
}

// Room for a test that runs twenty rivals at once, far below the server's 200.
const POOL_MAX = 24;
// A copied template must have no other user, and copying is one: one copy at a time, all workers.
const COPY_LOCK = "hashtextextended('tallyd:test-template', 0)";

/**
 * Makes a fresh database: a copy of the migrated template (default), or an empty one. Throws when
 * the migrations of this checkout do not apply: such a run must never look green.
 */
export async function createTestDb(
  options: { readonly template?: "migrated" | "empty" } = {},
): Promise<TestDb> {
  const template = options.template ?? "migrated";
  const fault = inject("testTemplateFault");
  if (template === "migrated" && fault !== "") {
    throw new Error(`the migrated template database could not be made: ${fault}`);
  }
  const name = ownName("tallyd_test");
  const source = template === "migrated" ? inject("testTemplate") : "template0";
  await runAsAdmin(`create database ${name} template ${source} ${inject("testCopyOption")}`);
  const url = withDatabase(inject("testServerUrl"), name);
  const pool = openPool({ url, applicationName: "tallyd-test", max: POOL_MAX });
  const close = async (): Promise<void> => {
    if (!pool.ended) await pool.end();
    // Force: a test of lost connections may leave one behind.
    await runAsAdmin(`drop database if exists ${name} with (force)`);
  };
  return { url, pool, close };
}

/**
 * Takes every row out of these tables. Far quicker than `truncate` for a handful of rows, which
 * makes a new file for every table and index. Triggers and references are not asked.
 */
export async function emptyTables(pool: Pool, tables: readonly string[]): Promise<void> {
  const deletes = tables.map((table) => `delete from ${table};`).join(" ");
  await pool.query(`begin; set local session_replication_role = replica; ${deletes} commit`);
}

// What migrations and views are noted in: without it every start builds the views anew.
const KEPT_TABLES = [
  "migration",
  "derived_function",
  "derived_state",
  "derived_grant",
  "derived_dependent",
];

/** The tables of schema `tallyd` that hold data. */
export async function dataTables(pool: Pool): Promise<string[]> {
  const found = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name
       from pg_tables
      where schemaname = 'tallyd'
        and tablename <> all ($1)`,
    [KEPT_TABLES],
  );
  return found.rows.map((row) => row.name);
}

async function runAsAdmin(statement: string): Promise<void> {
  const admin = new pg.Client({ connectionString: inject("testServerUrl") });
  await admin.connect();
  try {
    await admin.query(`select pg_advisory_lock(${COPY_LOCK})`);
    await admin.query(statement);
  } finally {
    await admin.end();
  }
}
