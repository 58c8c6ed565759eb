import type { Pool, PoolClient } from "pg";

import { MigrationError, PostgresTooOldError, SchemaNewerError } from "./errors.ts";
import type { Db } from "./pool.ts";
import { packageSqlDir, readMigrations, readViews } from "./sql-files.ts";
import type { MigrationFile, ViewFile } from "./sql-files.ts";
import { isLostRace, withTx } from "./tx.ts";
import { dropViews, rebuildViews, viewsAreCurrent } from "./views.ts";

/** One landed migration, as the schema remembers it. */
export interface LandedMigration {
  readonly version: number;
  readonly name: string;
  readonly sha256: string;
  readonly breaking: boolean;
}

/** What a schema holds. */
export interface SchemaState {
  /** Newest landed version, 0 when the schema is not there. */
  readonly current: number;
  /** Landed migrations in the order of their numbers. */
  readonly landed: readonly LandedMigration[];
}

/** What {@link migrate} did. */
export interface MigrateResult {
  /** File names that this call applied, in order. */
  readonly applied: readonly string[];
  /** Version of the schema afterwards. */
  readonly current: number;
}

// PostgreSQL 14 is the oldest one that the SQL is tested to run on.
const SERVER_VERSION_MIN = 140_000;
// Another replica may be building an index on a large table; its end is worth the wait.
const MIGRATOR_WAIT_MAX = "15min";
// A migration that waits for a table's lock stalls everybody behind it, so it gives up early.
const TABLE_WAIT_MAX = "60s";
// Bound of the loop over pending files: four digits in the name allow no more.
const MIGRATIONS_MAX = 9_999;
// Any fixed number will do, as long as every migrator of tallyd takes the same one.
const MIGRATOR_LOCK = "hashtextextended('tallyd:migrate', 0)";

const BOOKKEEPING = `
create table if not exists tallyd.migration (
  version    integer primary key check (version > 0),
  name       text not null check (name <> ''),
  sha256     text not null check (sha256 ~ '^[0-9a-f]{64}$'),
  breaking   boolean not null,
  applied_at timestamptz not null default now()
);
-- What the view files built: functions by name, and hashes that tell whether it still stands.
create table if not exists tallyd.derived_function (
  position  integer primary key,
  signature text not null unique check (signature <> '')
);
create table if not exists tallyd.derived_state (
  only_row       boolean primary key default true check (only_row),
  files_sha256   text not null check (files_sha256 <> ''),
  catalogue_hash text not null check (catalogue_hash <> '')
);
-- What people were granted on views that are dropped now and built again by the last step.
create table if not exists tallyd.derived_grant (
  relation  text not null check (relation <> ''),
  -- '' = the whole view
  part      text not null,
  -- null = public
  grantee   text check (grantee <> ''),
  privilege text not null check (privilege <> ''),
  grantable boolean not null
);
-- How views of others, built on ours, are made again by the last step.
create table if not exists tallyd.derived_dependent (
  position  bigint generated always as identity primary key,
  relation  text not null check (relation <> ''),
  statement text not null check (statement <> '')
);`;

/**
 * Brings the schema `tallyd` to the newest version of `<sqlDir>/migrations` (default: the
 * package's own), one transaction each, and rebuilds the views of `<sqlDir>/views`. Any number of
 * callers may run it at once; each migration lands once. Views are left alone when they already
 * are what the files say.
 *
 * Throws `PostgresTooOldError`, `SchemaNewerError` (somebody migrated further than this tallyd
 * knows) or `MigrationError` (naming the file); a migration that failed left nothing behind.
 */
export async function migrate(
  pool: Pool,
  options: { readonly sqlDir?: string } = {},
): Promise<MigrateResult> {
  const sqlDir = options.sqlDir ?? packageSqlDir();
  const files = await readMigrations(sqlDir);
  const views = await readViews(sqlDir);
  await refuseOldServer(pool);
  const applied: string[] = [];
  for (let step = 0; step <= MIGRATIONS_MAX; step += 1) {
    const name = await withTx(pool, (client) => applyNext(client, files, views));
    if (name === undefined) break;
    applied.push(name);
  }
  return { applied, current: (await schemaState(pool)).current };
}

/** Reads which migrations landed; `current` is 0 when the schema is absent. Writes nothing. */
export async function schemaState(db: Db): Promise<SchemaState> {
  const exists = await db.query<{ there: boolean }>(
    "select to_regclass('tallyd.migration') is not null as there",
  );
  if (exists.rows[0]?.there !== true) return { current: 0, landed: [] };
  const found = await db.query<LandedMigration>(
    "select version, name, sha256, breaking from tallyd.migration order by version",
  );
  return { current: found.rows.at(-1)?.version ?? 0, landed: found.rows };
}

async function refuseOldServer(pool: Pool): Promise<void> {
  const found = await pool.query<{ version: number; text: string }>(
    `select current_setting('server_version_num')::int as version,
            current_setting('server_version') as text`,
  );
  const server = found.rows[0];
  if (server === undefined || server.version < SERVER_VERSION_MIN) {
    throw new PostgresTooOldError(
      `the database is PostgreSQL ${server?.text ?? "of unknown version"}: tallyd needs 14 or newer`,
    );
  }
}

/**
 * One step in one transaction: the next pending migration, or, when none is left, the views.
 * Returns the name of the migration, undefined at the end. The lock belongs to the transaction,
 * not to the session, so that it also holds behind a pooler.
 */
async function applyNext(
  client: PoolClient,
  files: readonly MigrationFile[],
  views: readonly ViewFile[],
): Promise<string | undefined> {
  await client.query(`set local lock_timeout = '${MIGRATOR_WAIT_MAX}'`);
  await client.query(`select pg_advisory_xact_lock(${MIGRATOR_LOCK})`);
  await client.query(`set local lock_timeout = '${TABLE_WAIT_MAX}'`);
  await prepareSchema(client);
  const state = await schemaState(client);
  checkLanded(files, state);
  const next = files.find((file) => file.version > state.current);
  if (next !== undefined) {
    await applyFile(client, next);
    return next.name;
  }
  if (!(await viewsAreCurrent(client, views))) await rebuildViews(client, views);
  return undefined;
}

async function prepareSchema(client: PoolClient): Promise<void> {
  const found = await client.query<{ there: boolean }>(
    "select to_regnamespace('tallyd') is not null as there",
  );
  // `if not exists` would ask for the right to create schemas even where the schema is given.
  if (found.rows[0]?.there !== true) await client.query("create schema tallyd");
  // Unqualified names in the files mean our schema, whatever the role's own path says.
  await client.query("set local search_path = tallyd");
  await client.query("set local client_min_messages = warning");
  const done = await client.query<{ there: boolean }>(
    "select to_regclass('tallyd.derived_dependent') is not null as there",
  );
  if (done.rows[0]?.there !== true) await client.query(BOOKKEEPING);
}

/** Holds the landed migrations against the files; throws on the first difference. */
function checkLanded(files: readonly MigrationFile[], state: SchemaState): void {
  const byVersion = new Map(files.map((file) => [file.version, file]));
  const known = files.at(-1)?.version ?? 0;
  const newer = state.landed.filter((landed) => landed.version > known);
  if (newer.length > 0) {
    const breaking = newer.some((landed) => landed.breaking);
    throw new SchemaNewerError({ current: state.current, known, breaking });
  }
  for (const landed of state.landed) {
    const file = byVersion.get(landed.version);
    if (file === undefined) {
      throw new MigrationError(`${landed.name} has landed, but its file is gone from migrations`);
    }
    if (file.sha256 !== landed.sha256) {
      throw new MigrationError(
        `${file.name} was edited after it landed: restore it and put the change in a new migration`,
      );
    }
  }
  const landed = new Set(state.landed.map((row) => row.version));
  const late = files.find((file) => file.version < state.current && !landed.has(file.version));
  if (late !== undefined) {
    throw new MigrationError(
      `${late.name} is older than version ${String(state.current)}, which has landed: renumber it`,
    );
  }
}

async function applyFile(client: PoolClient, file: MigrationFile): Promise<void> {
  // The views may lean on what the migration changes; the last step builds them anew.
  await dropViews(client);
  await client.query("delete from tallyd.derived_state");
  const before = await transactionId(client);
  try {
    await client.query(file.text);
  } catch (error) {
    if (isLostRace(error)) throw error;
    throw new MigrationError(`${file.name} failed and was undone: ${String(error)}`, {
      cause: error,
    });
  }
  if ((await transactionId(client)) !== before) {
    throw new MigrationError(
      `${file.name} holds a commit or rollback: it must run in the one transaction it is given`,
    );
  }
  await client.query(
    "insert into tallyd.migration (version, name, sha256, breaking) values ($1, $2, $3, $4)",
    [file.version, file.name, file.sha256, file.breaking],
  );
}

async function transactionId(client: PoolClient): Promise<string> {
  const found = await client.query<{ id: string }>("select pg_current_xact_id()::text as id");
  return found.rows[0]?.id ?? "";
}
