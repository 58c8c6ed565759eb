import { invariant } from "../core/errors.ts";
import { readNamedSql, runNamed } from "../store/named-sql.ts";
import type { Db } from "../store/pool.ts";

/** A bound as a person gives it: a day in the report's zone, or an instant; `null`: not given. */
export type Bound = { readonly day: string } | { readonly at: Date } | null;

/** What a report is about; `to` is not included. */
export interface ReportRange {
  readonly from: Date;
  readonly to: Date;
  /** IANA name. */
  readonly timeZone: string;
}

const sql = readNamedSql("report/range.sql");

/**
 * The range that the bounds mean at `now`. Without any: the last whole day in the zone; a day that
 * the clocks change in has 23 or 25 hours. An end in the future is now. The caller sees to it that
 * `from` is before `to`.
 */
export async function reportRange(
  db: Db,
  input: {
    readonly from: Bound;
    readonly to: Bound;
    readonly timeZone: string;
    readonly now: Date;
  },
): Promise<ReportRange> {
  const { from, to, timeZone, now } = input;
  const [row] = await runNamed<{ range_from: Date; range_to: Date }>(db, sql, {
    ...{ from_day: dayOf(from), from_at: instantOf(from) },
    ...{ to_day: dayOf(to), to_at: instantOf(to), zone: timeZone, as_of: now },
  });
  invariant(row !== undefined, "a range has one row");
  return { from: row.range_from, to: row.range_to, timeZone };
}

function dayOf(bound: Bound): string | null {
  return bound !== null && "day" in bound ? bound.day : null;
}

function instantOf(bound: Bound): Date | null {
  return bound !== null && "at" in bound ? bound.at : null;
}
