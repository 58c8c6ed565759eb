import type { Log } from "../../core/log.ts";
import { stripeScopes } from "../../core/scope.ts";
import { covers, coverage } from "../../store/sources.ts";
import type { TimeRange } from "../../store/sources.ts";
import { closeFilledHoles, openHoles } from "./event-holes.ts";
import type { LookbackDeps } from "./first-lookback.ts";
import { firstLookback } from "./first-lookback.ts";
import type { RunResult, SourceTask } from "./run-scopes.ts";
import { runTasks } from "./run-scopes.ts";
import type { WalkDeps, WalkedResource, WalkProgress } from "./walk-range.ts";
import { listSource, settledUpTo, walkRange } from "./walk-range.ts";

/** The lists whose coverage proves what was attempted and what was paid. */
export const PROOF_LISTS = ["payment_intents", "charges"] as const;
/** Lists that events keep up to date; walked on a slower beat for events that never came. */
export const SLOW_LISTS = ["refunds", "disputes"] as const;
/** Everything that is walked. */
export const ALL_LISTS = [...PROOF_LISTS, ...SLOW_LISTS] as const;

/** What the regular walk needs. */
export type WalkListsDeps = WalkDeps & LookbackDeps & { readonly log: Log };

/** How a regular walk is narrowed; everything is optional. */
export interface WalkListsInput {
  readonly resources?: readonly WalkedResource[];
  readonly onProgress?: (progress: WalkProgress) => void;
  readonly signal?: AbortSignal;
}

/** Outcome of a walk over scopes and lists. */
export interface WalkListsResult extends RunResult {
  readonly objects: number;
  readonly pages: number;
}

/**
 * Reads of every scope and list what is not proven yet, up to the safety lag: since the last walk,
 * or on an empty mirror FIRST_LOOKBACK back and as far as the oldest unresolved intent needs (30
 * days at most), and the holes that the events list can no longer fill. Never throws for a
 * source that cannot be read; the others go on.
 */
export async function walkLists(
  deps: WalkListsDeps,
  input: WalkListsInput = {},
): Promise<WalkListsResult> {
  const counts = { objects: 0, pages: 0 };
  const tasks: SourceTask[] = [];
  for (const scope of stripeScopes(deps.settings.stripe)) {
    for (const resource of input.resources ?? ALL_LISTS) {
      const run = async (): Promise<void> => {
        const from = await startOf(deps, scope, resource);
        const range = { from, to: settledUpTo(deps) };
        const walked = await walkRange(deps, { scope, resource, ...range, ...listeners(input) });
        counts.objects += walked.objects;
        counts.pages += walked.pages;
      };
      tasks.push({ source: listSource(resource), scope, run });
    }
  }
  const result = await runTasks(deps, tasks);
  for (const scope of stripeScopes(deps.settings.stripe)) {
    await closeFilledHoles(deps, { scope, lists: ALL_LISTS });
  }
  return { ...result, ...counts };
}

function listeners(input: WalkListsInput): Pick<WalkListsInput, "onProgress" | "signal"> {
  return {
    ...(input.onProgress === undefined ? {} : { onProgress: input.onProgress }),
    ...(input.signal === undefined ? {} : { signal: input.signal }),
  };
}

/** From where a list has to be proven; what is covered behind it costs nothing. */
async function startOf(
  deps: WalkListsDeps,
  scope: string,
  resource: WalkedResource,
): Promise<Date> {
  const now = deps.clock.now();
  const covered = await coverage(deps.pool, { source: listSource(resource), scope });
  const end = covered.at(-1)?.to ?? now;
  const holes = await openHoles(deps.pool, scope);
  const starts = [end, await firstLookback(deps, scope)];
  return [...starts, ...holes.map((hole) => hole.from)].reduce((a, b) => (a < b ? a : b));
}

/**
 * Makes sure that both proof lists are completely read in [from, to): walks only what is missing.
 * `covered` false with `ok` true means that `to` is not settled yet (safety lag): ask again later.
 */
export async function ensureCoverage(
  deps: WalkDeps & { readonly log: Log },
  input: TimeRange & { readonly scope: string; readonly signal?: AbortSignal },
): Promise<RunResult & { readonly covered: boolean }> {
  const { scope, from, to } = input;
  const tasks = PROOF_LISTS.map((resource) => ({
    source: listSource(resource),
    scope,
    okAt: to,
    run: async () => {
      await walkRange(deps, { ...input, resource });
    },
  }));
  const result = await runTasks(deps, tasks);
  const proofs = await Promise.all(
    PROOF_LISTS.map((resource) =>
      covers(deps.pool, { source: listSource(resource), scope, from, to }),
    ),
  );
  return { ...result, covered: proofs.every(Boolean) };
}
