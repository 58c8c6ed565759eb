import { addMs } from "../core/clock.ts";
import { nextSweepDelay } from "../sources/stripe/sweep-beat.ts";
import { lastResultWith } from "../store/job-runs.ts";
import { monthlyReads } from "../store/read-counts.ts";
import type { Tallyd } from "./tallyd.ts";

/** Is a sweep of the events due, and how long to wait after it? */
export interface SweepPlan {
  readonly due: boolean;
  /** Milliseconds until the next sweep, by what this one found. */
  readonly nextDelay: (swept: { readonly missed: number; readonly pages: number }) => number;
}

/** Name of the job whose stored results carry the delay. */
const SWEEP_JOB = "sweep-events";

/**
 * Decides from the stored result of the last sweep, of whatever replica, and from the read budget
 * of the scope that has used most of it.
 */
export async function planSweep(tallyd: Tallyd): Promise<SweepPlan> {
  const { pool, clock, settings } = tallyd;
  const now = clock.now();
  const last = await lastResultWith(pool, SWEEP_JOB, "next_ms");
  const previousMs = last?.value ?? null;
  const due = last === null || now >= addMs(last.finishedAt, last.value);
  const budgets = due ? await monthlyReads(pool, { now }) : [];
  const tightest = budgets.reduce(
    (worst, one) => (share(one) > share(worst) ? one : worst),
    budgets[0] ?? { used: 0n, allowed: 1n },
  );
  return {
    due,
    nextDelay: ({ missed, pages }) =>
      nextSweepDelay({
        beatMs: settings.beats.eventsMs,
        previousMs,
        missed,
        readsPerSweep: pages,
        allowed: tightest.allowed,
        used: tightest.used,
      }),
  };
}

function share(budget: { readonly used: bigint; readonly allowed: bigint }): number {
  return Number(budget.used) / Number(budget.allowed);
}
