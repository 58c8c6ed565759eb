/**
 * `tallyd.tally`: things that are counted and not stored. `total` only grows; `streak` is how often
 * in a row, and a success sets it back to 0. `detail.recent` holds the last values, oldest first.
 */
import type { Db } from "./pool.ts";

/**
 * The tallies of the webhook route, of which the first five are streaks of refused requests, and
 * one of the team's table.
 */
export type TallyName =
  | "signature_missing"
  | "signature_malformed"
  | "signature_failure"
  | "stale_valid"
  | "secret_unset"
  | "oversize"
  | "bad_json"
  | "not_an_event"
  | "other_mode"
  | "foreign_account"
  | "event_type_ignored"
  | "event_lost"
  | "rights_lacking";

/** A number of equal things that were seen since the last write. */
export interface TallyCount {
  readonly name: TallyName;
  readonly count: number;
  readonly lastAt: Date;
  /**
   * Values worth keeping: offsets in seconds for `stale_valid` (positive: the signature is in our
   * past), account ids for `foreign_account`, event types for `event_lost`.
   */
  readonly recent: readonly (string | number)[];
}

/** A stored tally. */
export interface Tally {
  readonly name: string;
  readonly total: bigint;
  readonly streak: bigint;
  readonly lastAt: Date | null;
  readonly recent: readonly (string | number)[];
}

/** Twice the ten that name a clock skew (case B18 b); more would say nothing more. */
export const RECENT_MAX = 20;

/** Adds counts to total and streak. */
export async function addTallies(db: Db, counts: readonly TallyCount[]): Promise<void> {
  if (counts.length === 0) return;
  await db.query(
    `insert into tallyd.tally as stored (name, total, streak, last_at, detail)
     select name, count, count, last_at, jsonb_build_object('recent', recent)
       from jsonb_to_recordset($1::jsonb)
         as given (name text, count bigint, last_at timestamptz, recent jsonb)
      order by name collate "C"
         on conflict (name, scope)
            do update
                  set total = stored.total + excluded.total,
                      streak = stored.streak + excluded.streak,
                      last_at = greatest(stored.last_at, excluded.last_at),
                      detail = jsonb_build_object('recent', (
                        select coalesce(jsonb_agg(value order by place), '[]'::jsonb)
                          from (select value, place
                                  from jsonb_array_elements(
                                         coalesce(stored.detail -> 'recent', '[]'::jsonb)
                                         || (excluded.detail -> 'recent')
                                       ) with ordinality as list (value, place)
                                 order by place desc
                                 limit $2) as last))`,
    [
      JSON.stringify(
        counts.map(({ name, count, lastAt, recent }) => ({
          name,
          count,
          last_at: lastAt,
          recent: recent.slice(-RECENT_MAX),
        })),
      ),
      RECENT_MAX,
    ],
  );
}

/** Rights on the team's table that are lacking; see sources/local/rights.ts. */
export interface LackingRightsNote {
  readonly relation: string;
  readonly role: string;
  readonly columns: readonly string[];
  readonly grant: string;
}

/**
 * Notes that rights on the team's table are lacking, or (`null`) that none is: the detector
 * `config_error` tells of it. `last_at` is when this lack was first seen.
 */
export async function noteLackingRights(
  db: Db,
  lacking: LackingRightsNote | null,
  at: Date,
): Promise<void> {
  if (lacking === null) {
    await endStreaks(db, ["rights_lacking"]);
    return;
  }
  const { relation, role, columns, grant } = lacking;
  await db.query(
    `insert into tallyd.tally as stored (name, total, streak, last_at, detail)
     values ('rights_lacking', 1, 1, $1, $2)
         on conflict (name, scope)
            do update
                  set total = stored.total + 1,
                      streak = 1,
                      last_at = case stored.streak when 0 then excluded.last_at
                                else stored.last_at end,
                      detail = excluded.detail
                where stored.streak = 0
                   or stored.detail is distinct from excluded.detail`,
    [at, JSON.stringify({ relation, role, columns, grant })],
  );
}

/** Ends the streaks: a request came through. Recent values belong to the streak and go with it. */
export async function endStreaks(db: Db, names: readonly TallyName[]): Promise<void> {
  await db.query(
    `update tallyd.tally
        set streak = 0,
            detail = '{}'::jsonb
      where name = any ($1::text[])
        and scope = ''
        and streak <> 0`,
    [names],
  );
}

/** All tallies, by name. */
export async function readTallies(db: Db): Promise<ReadonlyMap<string, Tally>> {
  const result = await db.query<{
    name: string;
    total: bigint;
    streak: bigint;
    last_at: Date | null;
    detail: { readonly recent?: readonly (string | number)[] };
  }>(
    `select name, total, streak, last_at, detail
       from tallyd.tally
      where scope = ''
      order by name`,
  );
  return new Map(
    result.rows.map((row) => [
      row.name,
      {
        name: row.name,
        total: row.total,
        streak: row.streak,
        lastAt: row.last_at,
        recent: row.detail.recent ?? [],
      },
    ]),
  );
}
