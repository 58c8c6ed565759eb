import type { Pool } from "pg";
import type { Clock } from "../../core/clock.ts";
import { addMs } from "../../core/clock.ts";
import type { StripeSettings } from "../../core/settings.ts";
import { applyFacts } from "../../store/mirror.ts";
import { requestRefetch } from "../../store/refetch.ts";
import { missingRanges, saveProgress } from "../../store/sources.ts";
import type { TimeRange } from "../../store/sources.ts";
import { withTx } from "../../store/tx.ts";
import type { ListResource, StripeReader } from "./client.ts";
import { readObject } from "./read-object.ts";
import type { Batch, SecondRange } from "./page-sink.ts";
import { readWindow } from "./read-window.ts";

/** The lists that are walked by creation time. */
export type WalkedResource = Exclude<ListResource, "events">;

/** How far a walk has come. */
export interface WalkProgress {
  readonly scope: string;
  readonly resource: WalkedResource;
  /** Objects and pages read by this walk so far. */
  readonly objects: number;
  readonly pages: number;
  /** Share of the asked time that is behind us, 0 to 1; lists run from new to old. */
  readonly fraction: number;
}

/** What a walk needs. */
export interface WalkDeps {
  readonly client: StripeReader;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly settings: {
    readonly stripe: Pick<
      StripeSettings,
      "metadataKey" | "referenceKey" | "keyMetadata" | "owned" | "accounts" | "livemode"
    >;
    readonly rules: { readonly safetyLagMs: number };
  };
}

/** A half-open range of one list. */
export interface WalkInput extends TimeRange {
  readonly scope: string;
  readonly resource: WalkedResource;
  readonly onProgress?: (progress: WalkProgress) => void;
  readonly signal?: AbortSignal;
}

/** What a walk did. */
export interface WalkResult {
  readonly objects: number;
  readonly pages: number;
}

const MS_PER_SECOND = 1_000;
// `Date` has whole seconds and an answer takes time: a gap below this is no gap.
const CLOCK_NOISE_MS = 2_000;

/** Name of the source row of a list, e.g. `stripe.charges`. */
export function listSource(resource: WalkedResource): string {
  return `stripe.${resource}`;
}

/** The newest time up to which a list may be taken for settled: now less the safety lag. */
export function settledUpTo(deps: {
  readonly clock: Clock;
  readonly settings: { readonly rules: { readonly safetyLagMs: number } };
}): Date {
  return wholeSecond(addMs(deps.clock.now(), -deps.settings.rules.safetyLagMs));
}

/**
 * Walks what is not yet proven of [from, to) in one list, newest first, and stores it. Each page
 * is stored in its own transaction; coverage grows only in the one that completes a range, so a
 * crash costs some re-reading and nothing else (case B24). Bounds are cut to whole seconds and to
 * what is settled in Stripe's clock. Throws UnreadableError; AbortError when stopped.
 */
export async function walkRange(deps: WalkDeps, input: WalkInput): Promise<WalkResult> {
  const { scope, resource } = input;
  const settled = settledUpTo(deps);
  const from = wholeSecond(input.from);
  const to = wholeSecond(input.to < settled ? input.to : settled);
  const source = listSource(resource);
  const missing = await missingRanges(deps.pool, { source, scope, from, to });
  const counts = { objects: 0, pages: 0 };
  // The newest first: what is being decided right now waits the least.
  for (const range of missing.toReversed()) {
    const window = { scope, resource, from: toSeconds(range.from), to: toSeconds(range.to) };
    await readWindow(windowDeps(deps, input), window, async (batch) => {
      await storeBatch(deps, { scope, resource, settled }, batch);
      counts.objects += batch.objects.length;
      counts.pages += batch.pages;
      const fraction = (to.getTime() / MS_PER_SECOND - batch.reached) / spanSeconds({ from, to });
      input.onProgress?.({ scope, resource, ...counts, fraction: Math.min(1, fraction) });
    });
  }
  return counts;
}

function windowDeps(
  deps: WalkDeps,
  input: WalkInput,
): { client: StripeReader; signal?: AbortSignal } {
  const { client } = deps;
  return input.signal === undefined ? { client } : { client, signal: input.signal };
}

async function storeBatch(
  deps: WalkDeps,
  walk: { readonly scope: string; readonly resource: WalkedResource; readonly settled: Date },
  batch: Batch,
): Promise<void> {
  const { scope, resource } = walk;
  const readings = batch.objects.map((object) =>
    readObject({
      object,
      scope,
      settings: deps.settings.stripe,
      version: { at: batch.readAt, source: "fetch" },
    }),
  );
  const facts = readings.flatMap((reading) => reading.facts);
  const requests = readings.flatMap((reading) =>
    reading.refetch.map(({ id, reason }) => ({ scope, objectId: id, reason })),
  );
  const covered = batch.closed === null ? null : provenRange(deps, walk.settled, batch.closed);
  const now = deps.clock.now();
  await withTx(deps.pool, async (tx) => {
    await applyFacts(tx, facts, now);
    await requestRefetch(tx, { requests, now });
    if (covered === null) return;
    await saveProgress(tx, {
      source: listSource(resource),
      scope,
      cursor: null,
      coveredRange: covered,
    });
  });
}

/**
 * What may be claimed of a range that was read. Our clock decided where the newest end is; if it
 * runs ahead of Stripe's, that end lay in the future and objects could still appear in it.
 */
export function provenRange(
  deps: Pick<WalkDeps, "client">,
  settled: Date,
  closed: SecondRange,
): TimeRange | null {
  const aheadMs = deps.client.clockAheadMs() ?? 0;
  const newest = aheadMs > CLOCK_NOISE_MS ? wholeSecond(addMs(settled, -aheadMs)) : settled;
  const to = Math.min(closed.to, toSeconds(newest));
  return closed.from < to ? { from: fromSeconds(closed.from), to: fromSeconds(to) } : null;
}

function spanSeconds(range: TimeRange): number {
  return Math.max(1, (range.to.getTime() - range.from.getTime()) / MS_PER_SECOND);
}

/** The beginning of the second that `date` lies in. */
export function wholeSecond(date: Date): Date {
  return fromSeconds(toSeconds(date));
}

/** Unix seconds, rounded down. */
export function toSeconds(date: Date): number {
  return Math.floor(date.getTime() / MS_PER_SECOND);
}

/** The time of a whole Unix second. */
export function fromSeconds(seconds: number): Date {
  return new Date(seconds * MS_PER_SECOND);
}
