import type { Pool, PoolClient } from "pg";

import { UnreadableError } from "../../core/errors.ts";
import type { IntentRow, RowFault } from "../../core/intent.ts";
import type { Isolation } from "../../store/tx.ts";
import { withTx } from "../../store/tx.ts";
import { convertRow } from "./intent-row.ts";
import type { RawRow, RowContext } from "./intent-row.ts";
import type { PlaceSettings } from "./place.ts";
import { changeSql, changedSinceSql, columnList, idSql, selectList } from "./row-sql.ts";
import type { LocalShape } from "./shape.ts";
import { isRowError, reading } from "./team-errors.ts";
import { isoOfMicros, parseMicros } from "./time-sql.ts";

/** What a reader of the team's table needs. */
export interface ReaderDeps {
  /** Pool of the team's database. */
  readonly team: Pool;
  readonly shape: LocalShape;
  readonly place: PlaceSettings;
  /** How far a row's time may lie ahead of its database's clock. */
  readonly aheadMaxMs: number;
}

/** Rows that were read in one transaction. */
export interface RowPage {
  readonly rows: readonly IntentRow[];
  readonly faults: readonly RowFault[];
  /** Time of the snapshot in the team's database, ISO 8601 with microseconds. */
  readonly snapshotAt: string;
  /** Ids of all rows of the page, also of those set aside. */
  readonly ids: readonly string[];
}

/** Where the next page begins. */
interface Key {
  readonly id: string;
  /** ISO 8601; null in a sweep by id. */
  readonly changedAt: string | null;
}

// A page is held in memory whole: five thousand rows are a few megabytes and a few milliseconds.
const PAGE_ROWS = 5_000;
// Longer than any page by an index; without one, a scan of a hundred million rows fits in.
const STATEMENT_MAX_MS = 60_000;
// Rows whose expressions fail are found one by one; more of them are a wrong mapping.
const FAILING_ROWS_MAX = 200;
// Bound of the loop: five thousand million rows.
const PAGES_MAX = 1_000_000;

/** Every read of the team's table: one instant, no write possible, an end in sight. */
export const READ_ONLY_SNAPSHOT: {
  readonly readOnly: true;
  readonly isolation: Isolation;
  readonly statementTimeoutMs: number;
} = { readOnly: true, isolation: "repeatable read", statementTimeoutMs: STATEMENT_MAX_MS };

/**
 * Pages of rows changed at or after `since` (ISO 8601), in the order (time of change, id). Rows
 * that changed without a new time are not among them; a sweep finds those.
 */
export async function* readChangedRows(
  deps: ReaderDeps,
  input: { readonly since: string; readonly pageRows?: number },
): AsyncGenerator<RowPage> {
  yield* readPages(deps, {
    since: input.since,
    pageRows: input.pageRows ?? PAGE_ROWS,
    after: null,
  });
}

/** Pages of all rows in the order of their ids, after `afterId` when given. */
export async function* readAllRows(
  deps: ReaderDeps,
  input: { readonly afterId?: string; readonly pageRows?: number } = {},
): AsyncGenerator<RowPage> {
  const after = input.afterId === undefined ? null : { id: input.afterId, changedAt: null };
  yield* readPages(deps, { since: null, pageRows: input.pageRows ?? PAGE_ROWS, after });
}

interface PageInput {
  readonly since: string | null;
  readonly pageRows: number;
  readonly after: Key | null;
}

async function* readPages(deps: ReaderDeps, start: PageInput): AsyncGenerator<RowPage> {
  let after = start.after;
  let limit = start.pageRows;
  let failing = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await readPage(deps, { ...start, after, pageRows: limit });
    if (read.kind === "failed" && limit > 1) {
      limit = Math.max(1, Math.floor(limit / 2));
      continue;
    }
    if (read.kind === "failed") {
      failing += 1;
      if (failing > FAILING_ROWS_MAX) throw tooManyFailing(read.reason);
      // The row went away between the two looks: read on from the same place.
      if (read.keys.length === 0) continue;
    }
    const { keys, ...result } = read.kind === "read" ? read : failedRow(read);
    yield result;
    if (keys.length < limit) return;
    after = keys.at(-1) ?? null;
    // Back to whole pages step by step: bad rows tend to stand together.
    limit = Math.min(start.pageRows, limit * 2);
  }
}

type PageResult = RowPage & { readonly keys: readonly Key[] };

type Attempt =
  | (PageResult & { readonly kind: "read" })
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly keys: readonly Key[];
      readonly snapshotAt: string;
    };

async function readPage(deps: ReaderDeps, input: PageInput): Promise<Attempt> {
  return reading(async () => {
    try {
      return await withTx(deps.team, (tx) => readPageIn(tx, deps, input), READ_ONLY_SNAPSHOT);
    } catch (error) {
      if (!isRowError(error) || !(error instanceof Error)) throw error;
      const reason = error.message;
      if (input.pageRows > 1) return { kind: "failed", reason, keys: [], snapshotAt: "" };
      // Keys alone, so that the walk can step over the row.
      const found = await withTx(
        deps.team,
        async (tx) => ({ now: await snapshotMicros(tx), keys: await readKeys(tx, deps, input) }),
        READ_ONLY_SNAPSHOT,
      );
      return { kind: "failed", reason, keys: found.keys, snapshotAt: isoOfMicros(found.now) };
    }
  });
}

type KeyedRow = RawRow & { readonly key: string; readonly changed: string };

async function readPageIn(
  tx: PoolClient,
  deps: ReaderDeps,
  input: PageInput,
): Promise<PageResult & { readonly kind: "read" }> {
  const nowMicros = await snapshotMicros(tx);
  const { shape } = deps;
  const { inner, order, values } = innerSelect(shape, input);
  const found = await tx.query<KeyedRow>(
    `select ${selectList(shape)},
       ${keyColumns(shape, input)}
  from (${inner}) as ${shape.alias}
 order by ${order}`,
    values,
  );
  const context = rowContext(deps, nowMicros);
  return { kind: "read", ...convertPage(found.rows, context), keys: found.rows.map(keyOf) };
}

/** What rows of a snapshot are converted with. */
export function rowContext(deps: ReaderDeps, nowMicros: bigint): RowContext {
  const { shape, place, aheadMaxMs } = deps;
  return { states: shape.states, place, nowMicros, aheadMaxMs };
}

/** The page's rows by key order and limit; expressions of other fields see these rows alone. */
function innerSelect(
  shape: LocalShape,
  input: PageInput,
): { readonly inner: string; readonly order: string; readonly values: unknown[] } {
  const id = idSql(shape);
  const changed = changeSql(shape);
  const values: unknown[] = [input.pageRows];
  const conditions = [`${id.sql} is not null`];
  if (input.since !== null) {
    values.push(input.since);
    conditions.push(changedSinceSql(shape, "$2"), `${changed} >= $2::timestamptz`);
  }
  if (input.after !== null) {
    values.push(input.after.id);
    const idParameter = `$${String(values.length)}::${id.type}`;
    if (input.after.changedAt === null) conditions.push(`${id.sql} > ${idParameter}`);
    else {
      values.push(input.after.changedAt);
      const time = `$${String(values.length)}::timestamptz`;
      conditions.push(`(${changed}, ${id.sql}) > (${time}, ${idParameter})`);
    }
  }
  const order = input.since === null ? id.sql : `${changed}, ${id.sql}`;
  const inner = `select ${columnList(shape)}
          from ${shape.relation} as ${shape.alias}
         where ${conditions.join("\n           and ")}
         order by ${order}
         limit $1::int`;
  return { inner, order, values };
}

function keyColumns(shape: LocalShape, input: PageInput): string {
  const changed = input.since === null ? "null" : `extract(epoch from ${changeSql(shape)})`;
  return `${idSql(shape).sql}::text as "key", ${changed}::text as "changed"`;
}

async function readKeys(tx: PoolClient, deps: ReaderDeps, input: PageInput): Promise<Key[]> {
  const { inner, order, values } = innerSelect(deps.shape, input);
  const found = await tx.query<{ key: string; changed: string | null }>(
    `select ${keyColumns(deps.shape, input)}
  from (${inner}) as ${deps.shape.alias}
 order by ${order}`,
    values,
  );
  return found.rows.map(keyOf);
}

function keyOf(row: { readonly key: string; readonly changed: string | null }): Key {
  const micros = row.changed === null ? null : parseMicros(row.changed);
  // An infinite time of change sorts last; its own spelling is the key.
  const changedAt = micros === null ? row.changed?.toLowerCase() : isoOfMicros(micros);
  return { id: row.key, changedAt: changedAt ?? null };
}

/** Converts rows of one snapshot; of two with one id the newer is kept and the fault told. */
export function convertPage(raw: readonly RawRow[], context: RowContext): RowPage {
  const rows = new Map<string, IntentRow>();
  const faults: RowFault[] = [];
  const ids = new Set<string>();
  for (const one of raw) {
    const { row, fault } = convertRow(one, context);
    if (fault !== null) faults.push(fault);
    if (one.intentId !== null) ids.add(one.intentId);
    if (row === null) continue;
    const twin = rows.get(row.intentId);
    if (twin !== undefined) faults.push(twinFault(row.intentId));
    if (twin === undefined || twin.updatedAt <= row.updatedAt) rows.set(row.intentId, row);
  }
  const snapshotAt = isoOfMicros(context.nowMicros);
  return { rows: [...rows.values()], faults, ids: [...ids], snapshotAt };
}

function twinFault(intentId: string): RowFault {
  const fault = { field: "intentId", seen: "two rows with this id", allowed: "one row per id" };
  return { intentId, kept: true, faults: [fault] };
}

function failedRow(attempt: Attempt & { readonly kind: "failed" }): PageResult {
  const faults = attempt.keys.map((key) => ({
    intentId: key.id,
    kept: false,
    faults: [
      {
        field: "row",
        seen: attempt.reason,
        allowed: "values that the mapped expressions can read",
      },
    ],
  }));
  const ids = attempt.keys.map((key) => key.id);
  return { rows: [], faults, ids, snapshotAt: attempt.snapshotAt, keys: attempt.keys };
}

function tooManyFailing(reason: string): UnreadableError {
  return new UnreadableError(
    "shape",
    `the team's table: the mapped expressions fail on more than ${String(FAILING_ROWS_MAX)} rows ` +
      `(${reason}); make them work for every row of the table`,
  );
}

/** The snapshot's own time; every page is stamped with it. */
export async function snapshotMicros(tx: PoolClient): Promise<bigint> {
  const found = await tx.query<{ now: string }>("select extract(epoch from now())::text as now");
  return parseMicros(found.rows[0]?.now ?? "") ?? 0n;
}
