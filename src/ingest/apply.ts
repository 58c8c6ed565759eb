/**
 * From the inbox to the mirror, at our own pace and in batches. Facts, wishes to refetch and "done"
 * are one commit; an event that cannot be applied waits or dies alone (case B15).
 */
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import type { Reading } from "../core/facts.ts";
import type { Log } from "../core/log.ts";
import { reviveReading } from "../sources/stripe/reading-json.ts";
import { claimEvents, countDueEvents, failEvent, finishEvents } from "../store/inbox.ts";
import type { ClaimedEvent, EventKey } from "../store/inbox.ts";
import { applyFacts } from "../store/mirror.ts";
import { isOutOfReach } from "../store/out-of-reach.ts";
import { requestRefetch } from "../store/refetch.ts";
import { withTx } from "../store/tx.ts";

/** What applying needs. */
export interface ApplyDeps {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
}

/** What became of the claimed events. */
export interface AppliedInbox {
  readonly applied: number;
  /** Will be tried again. */
  readonly failed: number;
  /** Will not. */
  readonly dead: number;
  /** Applied, and nothing in them concerned the mirror. */
  readonly ignored: number;
  /** Still due, counted up to 10,000. */
  readonly left: number;
}

// One transaction of 500 events holds its locks for well under a second.
const BATCH_MAX = 500;
// Beyond this a backlog is a backlog; the exact number costs a scan and changes nothing.
const LEFT_COUNT_MAX = 10_000;
const ERROR_MAX = 1_800;

interface Counts {
  applied: number;
  failed: number;
  dead: number;
  ignored: number;
}

/**
 * Applies up to `limit` due events. Throws only when the database is out of reach: then nothing of
 * the batch was marked, and it is due again.
 */
export async function applyInbox(
  deps: ApplyDeps,
  input: { readonly limit: number },
): Promise<AppliedInbox> {
  const counts: Counts = { applied: 0, failed: 0, dead: 0, ignored: 0 };
  let claimedAll = 0;
  while (claimedAll < input.limit) {
    const limit = Math.min(BATCH_MAX, input.limit - claimedAll);
    const claimed = await applyBatch(deps, { limit, counts });
    claimedAll += claimed;
    if (claimed < limit) break;
  }
  const left = await countDueEvents(deps.pool, { now: deps.clock.now(), limit: LEFT_COUNT_MAX });
  return { ...counts, left };
}

async function applyBatch(
  deps: ApplyDeps,
  input: { readonly limit: number; readonly counts: Counts },
): Promise<number> {
  // Assigned inside the transaction, because a failed one must still say what it had claimed.
  let claimed: readonly ClaimedEvent[] = [];
  try {
    const applied = await withTx(deps.pool, async (tx) => {
      const now = deps.clock.now();
      claimed = await claimEvents(tx, { now, limit: input.limit });
      return applyClaimed(tx, { events: claimed, now });
    });
    input.counts.applied += applied.applied;
    input.counts.ignored += applied.ignored;
  } catch (error) {
    if (isOutOfReach(error) || claimed.length === 0) throw error;
    deps.log.warn("a batch of events could not be applied; each is tried alone", {
      events: claimed.length,
      error: String(error),
    });
    for (const event of claimed) await applyAlone(deps, event, input.counts);
  }
  return claimed.length;
}

async function applyAlone(deps: ApplyDeps, event: ClaimedEvent, counts: Counts): Promise<void> {
  const { scope, eventId } = event;
  try {
    const applied = await withTx(deps.pool, async (tx) => {
      const now = deps.clock.now();
      const events = await claimEvents(tx, { now, limit: 1, only: { scope, eventId } });
      return applyClaimed(tx, { events, now });
    });
    counts.applied += applied.applied;
    counts.ignored += applied.ignored;
  } catch (error) {
    if (isOutOfReach(error)) throw error;
    const why = describe(error);
    const now = deps.clock.now();
    const status = await failEvent(deps.pool, { scope, eventId, error: why, now });
    if (status === "dead") counts.dead += 1;
    else counts.failed += 1;
    deps.log.error("an event could not be applied", { scope, event: eventId, status, error: why });
  }
}

/** Writes everything that the events say, and that they are done. */
async function applyClaimed(
  tx: Parameters<typeof applyFacts>[0],
  input: { readonly events: readonly ClaimedEvent[]; readonly now: Date },
): Promise<{ readonly applied: number; readonly ignored: number }> {
  const { events, now } = input;
  if (events.length === 0) return { applied: 0, ignored: 0 };
  const readings = events.map((event) => ({ event, reading: readingOf(event) }));
  await applyFacts(
    tx,
    readings.flatMap(({ reading }) => reading.facts),
    now,
  );
  await requestRefetch(tx, {
    requests: readings.flatMap(({ event, reading }) =>
      reading.refetch.map(({ id, reason }) => ({ scope: event.scope, objectId: id, reason })),
    ),
    now,
  });
  const keys: EventKey[] = events.map(({ scope, eventId }) => ({ scope, eventId }));
  await finishEvents(tx, { events: keys, now });
  const ignored = readings.filter(({ reading }) => saysNothing(reading)).length;
  return { applied: events.length - ignored, ignored };
}

/** The reading of an event; one stored by another version of tallyd may need its object again. */
function readingOf(event: ClaimedEvent): Reading {
  try {
    return reviveReading(event.body);
  } catch (error) {
    if (event.objectId === null || event.body === null) throw error;
    const reason = "the stored form of the event is not known to this version of tallyd";
    return { facts: [], refetch: [{ id: event.objectId, reason }] };
  }
}

function saysNothing(reading: Reading): boolean {
  return reading.facts.length === 0 && reading.refetch.length === 0;
}

function describe(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, ERROR_MAX);
}
