/** Apply the inbox, match, judge: what a webhook sets off. Delivery and resolving follow it. */
import { applyInbox } from "../ingest/apply.ts";
import { judgeDue } from "../detect/judge.ts";
import { placeChanged } from "../match/place.ts";
import { wake } from "../resolve/run.ts";
import { refreshStatistics } from "../store/statistics.ts";
import { withTx } from "../store/tx.ts";
import { exclusively } from "./exclusively.ts";
import { judgeDeps } from "./judging.ts";
import type { Tallyd } from "./tallyd.ts";

/** What one round did; all counts. */
export interface FastCounts {
  readonly applied: number;
  readonly placed: number;
  readonly judged: number;
  readonly findings: number;
  /** Absence verdicts that wait because the direct look failed. */
  readonly unreadable: number;
}

/** One round, and whether more is waiting. */
export interface FastRound extends FastCounts {
  /** Charges that no row owns yet: the team's table may be ahead of what was read of it. */
  readonly unowned: number;
  readonly more: boolean;
}

/** Only one replica matches and judges at a time: two could each see half of a pair. */
export const JUDGE_LOCK = "judge";

// A round stays well under a second, so that the newest webhook never waits behind a backlog.
const APPLY_MAX = 2_000;

// A statement of placing takes milliseconds; one that goes on is a plan gone wrong, and it holds
// rows that every reader of a source waits for. It is tried again, with newer statistics.
const PLACE_STATEMENT_MAX_MS = 30_000;

/**
 * One round. Applying needs no lock; matching and judging give null when another replica is at
 * it (that one must be woken), unless `wait` says to wait for it.
 */
export async function fastRound(
  tallyd: Tallyd,
  options: { readonly wait: boolean; readonly signal: AbortSignal },
): Promise<FastRound | null> {
  const { pool, clock, log } = tallyd;
  const { applied, ignored, failed, dead, left } = await applyInbox(
    { pool, clock, log },
    { limit: APPLY_MAX },
  );
  const round = await exclusively(tallyd.locks, { name: JUDGE_LOCK, ...options }, () =>
    placeAndJudge(tallyd, options.signal),
  );
  if (round === null) return null;
  const moved = applied + ignored + failed + dead;
  // What only waits for its next try must not keep the loop spinning.
  return { ...round, applied: applied + ignored, more: round.more || (left > 0 && moved > 0) };
}

async function placeAndJudge(
  tallyd: Tallyd,
  signal: AbortSignal,
): Promise<Omit<FastRound, "applied">> {
  const { placed, unowned } = await placeAll(tallyd, signal);
  const judged = await judgeDue(judgeDeps(tallyd));
  return {
    placed,
    unowned,
    judged: judged.operations,
    findings: judged.findings,
    unreadable: judged.unreadable,
    more: judged.more,
  };
}

/**
 * Places everything that changed, and makes the ambiguous rows of touched operations due: a new
 * fact may settle them. The caller holds the judge lock.
 */
export async function placeAll(
  tallyd: Tallyd,
  signal: AbortSignal,
): Promise<{ readonly placed: number; readonly unowned: number }> {
  const { rules } = tallyd.settings;
  let placed = 0;
  let unowned = 0;
  for (;;) {
    signal.throwIfAborted();
    const now = await tallyd.now();
    await refreshStatistics(tallyd.pool);
    const batch = await withTx(
      tallyd.pool,
      async (tx) => {
        const done = await placeChanged(tx, rules, now);
        await wake(tx, { operationIds: done.operations, rules, now });
        return done;
      },
      { statementTimeoutMs: PLACE_STATEMENT_MAX_MS },
    );
    placed += batch.changed;
    unowned += batch.unowned;
    if (!batch.more) return { placed, unowned };
  }
}

/** Rounds until nothing is left; for commands that end afterwards. */
export async function fastUntilQuiet(tallyd: Tallyd, signal: AbortSignal): Promise<FastCounts> {
  const sum = { applied: 0, placed: 0, judged: 0, findings: 0, unreadable: 0 };
  for (;;) {
    const round = await fastRound(tallyd, { wait: true, signal });
    if (round === null) return sum;
    sum.applied += round.applied;
    sum.placed += round.placed;
    sum.judged += round.judged;
    sum.findings += round.findings;
    sum.unreadable += round.unreadable;
    if (!round.more) return sum;
  }
}
