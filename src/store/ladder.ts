/** The only writer of `tallyd.ladder`: where each ambiguous row stands on its look-ups. */
import { readNamedSql, runNamed } from "./named-sql.ts";
import type { Db } from "./pool.ts";

/** A row that is due for a look. */
export interface DueRow {
  readonly intentId: string;
  readonly scope: string;
  readonly state: string;
  /** `updated_at` of the row that the ladder was started for. */
  readonly since: Date;
  /** Looks made so far. */
  readonly rung: number;
  readonly nextAt: Date;
  /** `null`: it goes on. An ended ladder is due again only when something woke it. */
  readonly endedAt: Date | null;
}

/** The moments that decide which rows count, made from the settings. */
export interface CandidateLimits {
  readonly now: Date;
  /** Rows in flight that were not touched since are past their limit. */
  readonly stuckBefore: Date;
  /** No call that touched a row before this moment can still be under way. */
  readonly attemptsOver: Date;
}

const candidates = readNamedSql("resolve/candidates.sql");

/**
 * Puts ambiguous rows on the ladder: those of the table that became so by time, with `everything`
 * also those that may be retried although they were paid. A changed row starts anew; the
 * others stay where they are.
 */
export async function enrol(
  db: Db,
  limits: CandidateLimits,
  input: { readonly everything: boolean },
): Promise<void> {
  const { everything } = input;
  await runNamed(db, candidates, {
    ...parameters(limits),
    operations: [],
    sweep: true,
    everything,
    awake: false,
  });
}

/**
 * Makes the ambiguous rows of touched operations due now. An ended ladder stays ended until that
 * look says otherwise, so that its incident does not close and open again.
 */
export async function wakeOperations(
  db: Db,
  limits: CandidateLimits,
  operationIds: readonly string[],
): Promise<void> {
  if (operationIds.length === 0) return;
  await runNamed(db, candidates, {
    ...parameters(limits),
    operations: operationIds,
    sweep: false,
    everything: false,
    awake: true,
  });
}

function parameters(limits: CandidateLimits): Record<string, Date> {
  return {
    now: limits.now,
    stuck_before: limits.stuckBefore,
    attempts_over: limits.attemptsOver,
  };
}

/**
 * Rows to look at, in the order of their ids behind `after`. With `all` every row on the ladder,
 * ended or not yet due; else those whose time has come.
 */
export async function dueRows(
  db: Db,
  input: {
    readonly now: Date;
    readonly all: boolean;
    readonly after: string;
    readonly limit: number;
  },
): Promise<DueRow[]> {
  const found = await db.query<{
    intent_id: string;
    scope: string;
    state: string;
    since: Date;
    rung: number;
    next_at: Date;
    ended_at: Date | null;
  }>(
    `select l.intent_id, i.scope, l.state, l.since, l.rung, l.next_at, l.ended_at
       from tallyd.ladder l
       join tallyd.intent i using (intent_id)
      where ($1::boolean or l.next_at <= $2)
        and l.intent_id > $3
      order by l.intent_id
      limit $4`,
    [input.all, input.now, input.after, input.limit],
  );
  return found.rows.map((row) => ({
    intentId: row.intent_id,
    scope: row.scope,
    state: row.state,
    since: row.since,
    rung: row.rung,
    nextAt: row.next_at,
    endedAt: row.ended_at,
  }));
}

/** Notes a look: the next one, or the end with what is missing. */
export async function saveLook(
  db: Db,
  look: {
    readonly intentId: string;
    readonly rung: number;
    /** `null`: only a new fact or a change of the row brings the next one. */
    readonly nextAt: Date | null;
    readonly endedAt: Date | null;
    /** Stored as JSON at the end; `null` while the ladder goes on. */
    readonly missing: unknown;
    /** A row that changed meanwhile was put on a new ladder, which this look must not touch. */
    readonly since: Date;
  },
): Promise<void> {
  await db.query(
    `update tallyd.ladder
        set rung = $2,
            next_at = coalesce($3::timestamptz, '9999-12-31T00:00:00Z'),
            ended_at = $4,
            missing = $5::jsonb
      where intent_id = $1
        -- A Date has milliseconds, the column has microseconds.
        and date_trunc('milliseconds', since) = date_trunc('milliseconds', $6::timestamptz)`,
    [
      look.intentId,
      look.rung,
      look.nextAt,
      look.endedAt,
      look.missing === null ? null : JSON.stringify(look.missing),
      look.since,
    ],
  );
}

/** Takes rows off the ladder that are settled, moved on or gone. */
export async function leaveLadder(db: Db, intentIds: readonly string[]): Promise<void> {
  if (intentIds.length === 0) return;
  await db.query("delete from tallyd.ladder where intent_id = any ($1::text[])", [intentIds]);
}

/** Takes rows off that need no look any more: another writer settled them, or they vanished. */
export async function dropSettled(db: Db): Promise<void> {
  await db.query(
    `delete from tallyd.ladder l
      where not exists (
              select
                from tallyd.intent_fact i
               where i.intent_id = l.intent_id
                 and i.state in ('key_minted', 'in_flight', 'failed_retryable', 'reconciling')
            )`,
  );
}

/** Makes rows due whose signed authorization ended in a time that a chain was just read to. */
export async function wakeEnded(
  db: Db,
  input: {
    readonly scope: string;
    readonly from: Date;
    readonly to: Date;
    readonly now: Date;
  },
): Promise<void> {
  await db.query(
    `update tallyd.ladder l
        set next_at = $4
       from tallyd.intent i
      where i.intent_id = l.intent_id
        and i.scope = $1
        and i.valid_before > $2
        and i.valid_before <= $3
        and l.next_at > $4`,
    [input.scope, input.from, input.to, input.now],
  );
}
