/** The one writer of `tallyd.daily_digest`: which days' digests are on their way. */
import type { Db } from "./pool.ts";

/** Where a moment stands in a day of a time zone. */
export interface DigestDay {
  /** `YYYY-MM-DD` there. */
  readonly day: string;
  /** The hour of the digest has come and nobody has written it. */
  readonly due: boolean;
  /** No digest was ever written: tallyd is new here. */
  readonly first: boolean;
}

/**
 * The day of `now` in the zone, and whether its digest is due at wall time `at` (`HH:MM`). An hour
 * that the clocks skip is due right after the gap; one that comes twice is due once.
 */
export async function digestDay(
  db: Db,
  input: { readonly now: Date; readonly timeZone: string; readonly at: string },
): Promise<DigestDay> {
  const found = await db.query<DigestDay>(
    `with wall as (
       select $1::timestamptz at time zone $2 as now
     )
     select to_char(w.now, 'YYYY-MM-DD') as day,
            w.now::time >= $3::time
              and not exists (select from tallyd.daily_digest d where d.day = w.now::date) as due,
            not exists (select from tallyd.daily_digest) as first
       from wall w`,
    [input.now, input.timeZone, input.at],
  );
  const row = found.rows[0];
  if (row === undefined) throw new Error("a moment has no day");
  return row;
}

/** Takes a day for this replica; false: another one has it. */
export async function takeDigestDay(
  tx: Db,
  input: { readonly day: string; readonly told: boolean; readonly now: Date },
): Promise<boolean> {
  const added = await tx.query(
    `insert into tallyd.daily_digest (day, told, made_at)
     values ($1, $2, $3)
         on conflict do nothing`,
    [input.day, input.told, input.now],
  );
  return added.rowCount === 1;
}
