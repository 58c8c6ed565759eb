import { addMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { stripeAccountOf, stripeScopes } from "../../core/scope.ts";
import { eventKey, insertEvents } from "../../store/inbox.ts";
import type { InboxEvent } from "../../store/inbox.ts";
import { requestRefetch } from "../../store/refetch.ts";
import type { TimeRange } from "../../store/sources.ts";
import { coverage, missingRanges, saveProgress } from "../../store/sources.ts";
import { withTx } from "../../store/tx.ts";
import { unsettledObjects } from "../../store/unsettled-objects.ts";
import { EVENTS_SOURCE, recordHole, recordStart } from "./event-holes.ts";
import type { LookbackDeps } from "./first-lookback.ts";
import { firstLookback } from "./first-lookback.ts";
import { readEvent } from "./read-event.ts";
import type { Batch } from "./page-sink.ts";
import { readWindow } from "./read-window.ts";
import type { RunResult } from "./run-scopes.ts";
import { runTasks } from "./run-scopes.ts";
import type { WalkDeps } from "./walk-range.ts";
import { provenRange, toSeconds, wholeSecond } from "./walk-range.ts";

/** What the sweep needs. */
export type SweepDeps = WalkDeps & LookbackDeps & { readonly log: Log };

/** What a sweep over all scopes found. */
export interface SweepResult extends RunResult {
  /** Events that the inbox did not have. */
  readonly fresh: number;
  /** Of those, the ones that a webhook should have brought by now. */
  readonly missed: number;
  /** Pages that were read. */
  readonly pages: number;
  /** Ranges that Stripe had deleted before they were read, found by this sweep. */
  readonly holes: readonly (TimeRange & { readonly scope: string })[];
}

/**
 * The event types that say something about money. Stripe takes 20 of them in one request at most;
 * `payment_intent.requires_action` and the two about a dispute's funds are left out because each
 * of them comes with, or before, one that is here.
 */
export const SWEPT_TYPES = [
  "payment_intent.created",
  "payment_intent.processing",
  "payment_intent.amount_capturable_updated",
  "payment_intent.succeeded",
  "payment_intent.payment_failed",
  "payment_intent.canceled",
  "charge.succeeded",
  "charge.failed",
  "charge.pending",
  "charge.captured",
  "charge.expired",
  "charge.updated",
  "charge.refunded",
  "charge.refund.updated",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed",
  "refund.created",
  "refund.updated",
  "refund.failed",
] as const;

const MS_PER_DAY = 86_400_000;
// Events settle late: one may be listed after a younger one (case B25 d). Ten minutes are read
// again each time, which costs nothing but the look whether the inbox knows them.
const OVERLAP_MS = 10 * 60_000;
// The newest events are taken in and never counted as completely read.
const SETTLE_MS_MIN = 60_000;
// Stripe's clock may be ahead of ours; what it dates into our future is read too.
const AHEAD_MS = 5 * 60_000;
/** Stripe keeps events for 30 days. */
export const EVENTS_KEPT_MS = 30 * MS_PER_DAY;
// The oldest page is read last; it must not be deleted while the newer ones are being read.
const KEPT_MARGIN_MS = 10 * 60_000;
// Webhooks come within seconds; an event that is older and was not brought was missed.
const WEBHOOK_GRACE_MS = 5 * 60_000;
// Objects that may have changed unseen inside a hole are read by id, the newest first; each costs
// a read of the monthly allocation, whose floor is 10,000.
const REVISITED_MAX = 1_000;

interface Found {
  fresh: number;
  missed: number;
  pages: number;
}

/**
 * Sweeps the events list of every scope into the inbox: all that is not proven to be read, and
 * the last ten minutes once more. Never throws for a scope that cannot be read.
 */
export async function sweepEvents(
  deps: SweepDeps,
  input: { readonly signal?: AbortSignal } = {},
): Promise<SweepResult> {
  const found: Found = { fresh: 0, missed: 0, pages: 0 };
  const holes: (TimeRange & { readonly scope: string })[] = [];
  const tasks = stripeScopes(deps.settings.stripe).map((scope) => ({
    source: EVENTS_SOURCE,
    scope,
    run: async () => {
      const hole = await noteHole(deps, scope);
      if (hole !== null) holes.push({ ...hole, scope });
      await sweepScope(deps, { ...input, scope }, found);
    },
  }));
  const result = await runTasks(deps, tasks);
  return { ...result, ...found, holes };
}

/** The oldest time whose events Stripe surely still has. */
function keptFrom(deps: SweepDeps): Date {
  return wholeSecond(addMs(deps.clock.now(), KEPT_MARGIN_MS - EVENTS_KEPT_MS));
}

function settledEvents(deps: SweepDeps): Date {
  const lagMs = Math.max(SETTLE_MS_MIN, deps.settings.rules.safetyLagMs);
  return wholeSecond(addMs(deps.clock.now(), -lagMs));
}

/** Notes what retention has taken since the last sweep, and has suspects read by id. */
async function noteHole(deps: SweepDeps, scope: string): Promise<TimeRange | null> {
  const covered = await coverage(deps.pool, { source: EVENTS_SOURCE, scope });
  const end = covered.at(-1)?.to;
  const kept = keptFrom(deps);
  if (end === undefined || end >= kept) return null;
  const hole = { from: end, to: kept };
  await recordHole(deps.pool, { scope, hole });
  const ids = await unsettledObjects(deps.pool, {
    scope,
    createdBefore: kept,
    limit: REVISITED_MAX,
  });
  const reason = "events about it may have been deleted before they were read";
  await withTx(deps.pool, async (tx) => {
    const requests = ids.map((objectId) => ({ scope, objectId, reason }));
    await requestRefetch(tx, { requests, now: deps.clock.now() });
  });
  return hole;
}

async function sweepScope(
  deps: SweepDeps,
  input: { readonly scope: string; readonly signal?: AbortSignal },
  found: Found,
): Promise<void> {
  const { scope, signal } = input;
  await recordStart(deps.pool, { scope, at: deps.clock.now() });
  const settled = settledEvents(deps);
  const { client } = deps;
  for (const range of await rangesToSweep(deps, scope, settled)) {
    const window = {
      scope,
      resource: "events" as const,
      from: toSeconds(range.from),
      to: toSeconds(range.to),
      types: SWEPT_TYPES,
    };
    const windowDeps = signal === undefined ? { client } : { client, signal };
    await readWindow(windowDeps, window, async (batch) => {
      await storeEvents(deps, { scope, settled, batch }, found);
      found.pages += batch.pages;
    });
  }
}

/** What is missing, each with the overlap before it; the newest also reaches past now. */
async function rangesToSweep(deps: SweepDeps, scope: string, settled: Date): Promise<TimeRange[]> {
  const kept = keptFrom(deps);
  const covered = await coverage(deps.pool, { source: EVENTS_SOURCE, scope });
  const end = covered.at(-1)?.to ?? settled;
  const first = await firstLookback(deps, scope);
  const start = [end, first].reduce((a, b) => (a < b ? a : b));
  const from = start > kept ? wholeSecond(start) : kept;
  const key = { source: EVENTS_SOURCE, scope };
  const missing = await missingRanges(deps.pool, { ...key, from, to: settled });
  // Even with nothing missing, the unsettled end is looked at.
  const newest = missing.at(-1)?.to.getTime() === settled.getTime() ? missing.pop() : undefined;
  const top = wholeSecond(addMs(deps.clock.now(), AHEAD_MS));
  const ranges = [{ from: newest?.from ?? settled, to: top }, ...missing.toReversed()];
  return ranges.map((range) => {
    const overlapped = addMs(range.from, -OVERLAP_MS);
    return { from: overlapped > kept ? overlapped : kept, to: range.to };
  });
}

async function storeEvents(
  deps: SweepDeps,
  page: { readonly scope: string; readonly settled: Date; readonly batch: Batch },
  found: Found,
): Promise<void> {
  const { scope, settled, batch } = page;
  const now = deps.clock.now();
  const events = inboxRows(deps, scope, batch);
  const covered = batch.closed === null ? null : provenRange(deps, settled, batch.closed);
  const fresh = await withTx(deps.pool, async (tx) => {
    const keys = await insertEvents(tx, { events, via: "sweep", now });
    if (covered !== null) {
      const progress = { source: EVENTS_SOURCE, scope, cursor: null, coveredRange: covered };
      await saveProgress(tx, progress);
    }
    return keys;
  });
  const graceEnd = addMs(now, -WEBHOOK_GRACE_MS);
  found.fresh += fresh.size;
  found.missed += events.filter(
    (event) => fresh.has(eventKey(event)) && event.createdAt < graceEnd,
  ).length;
}

function inboxRows(deps: SweepDeps, scope: string, batch: Batch): InboxEvent[] {
  return batch.objects.flatMap((event) => {
    const read = readEvent({
      event,
      settings: deps.settings.stripe,
      listedFor: stripeAccountOf(scope),
    });
    if (read.kind === "event") return [read.event];
    // A shape that nobody knows must not blind the whole list; the object lists see its object.
    deps.log.warn("an event of the list was left out", { scope, id: event.id, why: read.kind });
    return [];
  });
}
