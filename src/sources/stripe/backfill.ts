import type { Log } from "../../core/log.ts";
import { stripeScopes } from "../../core/scope.ts";
import { closeFilledHoles } from "./event-holes.ts";
import type { RunResult } from "./run-scopes.ts";
import { runTasks } from "./run-scopes.ts";
import { ALL_LISTS } from "./walk-lists.ts";
import type { WalkDeps, WalkedResource } from "./walk-range.ts";
import { listSource, settledUpTo, walkRange } from "./walk-range.ts";

/** How far a backfill has come, over all scopes and lists. */
export interface BackfillProgress {
  /** Objects and pages read by this run; what earlier runs had read is not read again. */
  readonly objects: number;
  readonly pages: number;
  /** Estimated by time, 0 to 1: lists say nothing about how long they are. */
  readonly fraction: number;
  /** The list that moved last. */
  readonly scope: string;
  readonly resource: WalkedResource;
}

/** What to read. */
export interface BackfillInput {
  readonly since: Date;
  /** Default: as new as is settled. */
  readonly until?: Date;
  /** Default: all lists. */
  readonly resources?: readonly WalkedResource[];
  readonly onProgress?: (progress: BackfillProgress) => void;
  readonly signal?: AbortSignal;
}

/** What a backfill read. */
export interface BackfillResult extends RunResult {
  readonly objects: number;
  readonly pages: number;
}

// Two lists at once keep the store busy while the other one is fetched; more would only share
// Stripe's limit of the account and the connections of the pool.
const LISTS_AT_ONCE_MAX = 2;

/**
 * Reads the object lists of every scope from `since` on, two lists at a time, and keeps nothing in
 * memory but a page or two of each. What is proven to be read is skipped, so a run that was
 * killed continues when it is started again. Throws AbortError when `signal` stops it; a list
 * that cannot be read is told in the result.
 */
export async function backfill(
  deps: WalkDeps & { readonly log: Log },
  input: BackfillInput,
): Promise<BackfillResult> {
  const to = input.until ?? settledUpTo(deps);
  const totals = new Map<string, { objects: number; pages: number; fraction: number }>();
  const tasks = stripeScopes(deps.settings.stripe).flatMap((scope) =>
    (input.resources ?? ALL_LISTS).map((resource) => {
      const name = `${scope} ${resource}`;
      totals.set(name, { objects: 0, pages: 0, fraction: 0 });
      const run = async (): Promise<void> => {
        const walked = await walkRange(deps, {
          scope,
          resource,
          from: input.since,
          to,
          onProgress: (progress) => {
            totals.set(name, progress);
            input.onProgress?.({ ...sumOf(totals), scope, resource });
          },
          ...(input.signal === undefined ? {} : { signal: input.signal }),
        });
        totals.set(name, { ...walked, fraction: 1 });
        input.onProgress?.({ ...sumOf(totals), scope, resource });
      };
      return { source: listSource(resource), scope, okAt: to, run };
    }),
  );
  const result = await runTasks(deps, tasks, { atOnce: LISTS_AT_ONCE_MAX });
  for (const scope of stripeScopes(deps.settings.stripe)) {
    await closeFilledHoles(deps, { scope, lists: ALL_LISTS });
  }
  const { objects, pages } = sumOf(totals);
  return { ...result, objects, pages };
}

function sumOf(totals: ReadonlyMap<string, { objects: number; pages: number; fraction: number }>): {
  objects: number;
  pages: number;
  fraction: number;
} {
  const sum = { objects: 0, pages: 0, fraction: 0 };
  for (const part of totals.values()) {
    sum.objects += part.objects;
    sum.pages += part.pages;
    sum.fraction += part.fraction / totals.size;
  }
  return sum;
}
