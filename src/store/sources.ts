import type { UnreadableCode } from "../core/errors.ts";
import type { Db } from "./pool.ts";

/** A half-open range of time: `from` is included, `to` is not. */
export interface TimeRange {
  readonly from: Date;
  readonly to: Date;
}

/** Names one row of `tallyd.source`, e.g. `stripe.charges` in `platform/live`. */
export interface SourceKey {
  readonly source: string;
  readonly scope: string;
}

/** One source in one scope: its bookmark, what is proven to be read, and how it does. */
export interface SourceRow extends SourceKey {
  readonly cursor: Readonly<Record<string, unknown>>;
  /** Oldest first, neither overlapping nor touching. */
  readonly covered: readonly TimeRange[];
  /** `null` until the first complete read. */
  readonly lastOkAt: Date | null;
  readonly lastError: string | null;
  readonly lastErrorCode: string | null;
  /** `null` while healthy. */
  readonly failingSince: Date | null;
  /** Failures in a row. */
  readonly failures: number;
}

// The length that the table allows; a longer message loses its end, not the failure.
const ERROR_CHARS_MAX = 2_000;

const COLUMNS = `
select s.source, s.scope, s.cursor, s.last_ok_at, s.last_error, s.last_error_code,
       s.failing_since, s.failures,
       array(select lower(r) from unnest(s.covered) as r order by r) as covered_from,
       array(select upper(r) from unnest(s.covered) as r order by r) as covered_to
  from tallyd.source s`;

interface Row {
  readonly source: string;
  readonly scope: string;
  readonly cursor: Record<string, unknown>;
  readonly last_ok_at: Date | null;
  readonly last_error: string | null;
  readonly last_error_code: string | null;
  readonly failing_since: Date | null;
  readonly failures: number;
  readonly covered_from: Date[];
  readonly covered_to: Date[];
}

/** Reads one source; `null`: it was never read. */
export async function getSource(db: Db, key: SourceKey): Promise<SourceRow | null> {
  const found = await db.query<Row>(`${COLUMNS} where s.source = $1 and s.scope = $2`, [
    key.source,
    key.scope,
  ]);
  const row = found.rows[0];
  return row === undefined ? null : toSource(row);
}

/** Reads all sources, for health, metrics and `doctor`; a handful of rows. */
export async function listSources(db: Db): Promise<SourceRow[]> {
  const found = await db.query<Row>(`${COLUMNS} order by s.source, s.scope`);
  return found.rows.map(toSource);
}

function toSource(row: Row): SourceRow {
  return {
    source: row.source,
    scope: row.scope,
    cursor: row.cursor,
    covered: toRanges(row.covered_from, row.covered_to),
    lastOkAt: row.last_ok_at,
    lastError: row.last_error,
    lastErrorCode: row.last_error_code,
    failingSince: row.failing_since,
    failures: row.failures,
  };
}

function toRanges(from: readonly Date[], to: readonly Date[]): TimeRange[] {
  return from.flatMap((start, index) => {
    const end = to[index];
    return end === undefined ? [] : [{ from: start, to: end }];
  });
}

/**
 * Moves the bookmark (`cursor` null: keeps it) and adds a range to what is proven to be read
 * (`coveredRange` null: adds none). Call it only in the transaction that stored what was read
 * (invariant 10).
 */
export async function saveProgress(
  tx: Db,
  progress: SourceKey & {
    readonly cursor: Readonly<Record<string, unknown>> | null;
    readonly coveredRange: TimeRange | null;
  },
): Promise<void> {
  const { source, scope, cursor, coveredRange } = progress;
  await tx.query(
    `insert into tallyd.source as s (source, scope, cursor, covered)
     values ($1, $2, coalesce($3::jsonb, '{}'::jsonb),
             case when $4::timestamptz is null
                  then '{}'::tstzmultirange
                  else tstzmultirange(tstzrange($4, $5, '[)')) end)
     on conflict (source, scope) do update
       set cursor = coalesce($3::jsonb, s.cursor),
           covered = s.covered + excluded.covered`,
    [
      source,
      scope,
      cursor === null ? null : JSON.stringify(cursor),
      coveredRange?.from ?? null,
      coveredRange?.to ?? null,
    ],
  );
}

/** Notes a complete read: the source is healthy again. */
export async function markOk(db: Db, ok: SourceKey & { readonly at: Date }): Promise<void> {
  await db.query(
    `insert into tallyd.source (source, scope, last_ok_at)
     values ($1, $2, $3)
     on conflict (source, scope) do update
       set last_ok_at = greatest(source.last_ok_at, excluded.last_ok_at),
           last_error = null,
           last_error_code = null,
           failing_since = null,
           failures = 0`,
    [ok.source, ok.scope, ok.at],
  );
}

/** Notes a read that could not be completed; cursor and coverage stay where they are. */
export async function markFailed(
  db: Db,
  failure: SourceKey & {
    readonly code: UnreadableCode;
    readonly message: string;
    readonly at: Date;
  },
): Promise<void> {
  await db.query(
    `insert into tallyd.source as s
       (source, scope, last_error, last_error_code, failing_since, failures)
     values ($1, $2, $3, $4, $5, 1)
     on conflict (source, scope) do update
       set last_error = excluded.last_error,
           last_error_code = excluded.last_error_code,
           failing_since = coalesce(s.failing_since, excluded.failing_since),
           failures = s.failures + 1`,
    [
      failure.source,
      failure.scope,
      failure.message.slice(0, ERROR_CHARS_MAX),
      failure.code,
      failure.at,
    ],
  );
}

/** What is proven to be read, oldest first; empty for a source that was never read. */
export async function coverage(db: Db, key: SourceKey): Promise<readonly TimeRange[]> {
  return (await getSource(db, key))?.covered ?? [];
}

/** Is all of [from, to) proven to be read? An empty range needs no proof. */
export async function covers(db: Db, range: SourceKey & TimeRange): Promise<boolean> {
  return (await missingRanges(db, range)).length === 0;
}

/** The parts of [from, to) that are not proven to be read, oldest first. */
export async function missingRanges(db: Db, range: SourceKey & TimeRange): Promise<TimeRange[]> {
  if (range.from >= range.to) return [];
  const found = await db.query<{ from: Date; to: Date }>(
    `with wanted as (
       select tstzmultirange(tstzrange($3, $4, '[)')) as span
     ),
     missing as (
       select w.span - coalesce(s.covered, '{}'::tstzmultirange) as spans
         from wanted w
         left join tallyd.source s
           on s.source = $1
          and s.scope = $2
     )
     select lower(r) as "from", upper(r) as "to"
       from missing m
      cross join lateral unnest(m.spans) as r
      order by r`,
    [range.source, range.scope, range.from, range.to],
  );
  return found.rows;
}
