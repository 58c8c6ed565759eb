/** What the jobs are given: the steps of this tallyd, each returning counts. */
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import type { Settings } from "../core/settings.ts";
import type { UnhealthyJob } from "../scheduler/health.ts";
import type { JobCounts } from "../scheduler/job.ts";
import { scanChains } from "./chain-steps.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { tellDay } from "./daily-digest.ts";
import { planSweep } from "./sweep-plan.ts";
import {
  auditOperations,
  deliverAlerts,
  drainStripeRefetch,
  judgeAllSources,
  readLocal,
  resolveRows,
  sweepStripeEvents,
  walkStripeLists,
} from "./steps.ts";
import type { StepResult } from "./steps.ts";
import type { Tallyd } from "./tallyd.ts";

/** The work that jobs call. All reject when a fault of tallyd or the signal ends them. */
export interface Work {
  readonly readLocal: (how: "changes" | "sweep") => Promise<JobCounts>;
  readonly sweepEvents: (signal: AbortSignal) => Promise<JobCounts>;
  readonly walkLists: (which: "proof" | "slow", signal: AbortSignal) => Promise<JobCounts>;
  readonly drainRefetch: (signal: AbortSignal) => Promise<JobCounts>;
  readonly scanChains: (signal: AbortSignal) => Promise<JobCounts>;
  readonly resolve: (signal: AbortSignal) => Promise<JobCounts>;
  readonly deliver: (signal: AbortSignal) => Promise<JobCounts>;
  readonly judgeSources: (signal: AbortSignal) => Promise<JobCounts>;
  readonly audit: (signal: AbortSignal) => Promise<JobCounts>;
  /** The digest of the day before, when its hour has come. */
  readonly tellDay: () => Promise<JobCounts>;
  readonly heartbeat: (signal: AbortSignal) => Promise<JobCounts>;
}

/** Deps of every job. */
export interface JobDeps {
  readonly work: Work;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly settings: Settings;
}

/**
 * Wires the steps. `wake` is called after a step that may have left something to match or judge;
 * `unhealthyJobs` says which jobs are dead, for the incident about them.
 */
export function createWork(
  tallyd: Tallyd,
  hooks: {
    readonly wake: () => void;
    readonly unhealthyJobs: () => Promise<readonly UnhealthyJob[]>;
    /** `null`: no address is set. */
    readonly heartbeat: Heartbeat | null;
  },
): Work {
  let afterStart = true;
  const step = async (work: Promise<StepResult>): Promise<JobCounts> => {
    const { counts } = await work;
    hooks.wake();
    return counts;
  };
  return {
    readLocal: (how) => step(readLocal(tallyd, how)),
    sweepEvents: async (signal) => {
      const plan = await planSweep(tallyd);
      if (!plan.due) return {};
      const { counts, missed, pages } = await sweepStripeEvents(tallyd, signal);
      hooks.wake();
      // Stored with the run: the next plan, on whatever replica, goes by it.
      return { ...counts, next_ms: plan.nextDelay({ missed, pages }) };
    },
    walkLists: (which, signal) => step(walkStripeLists(tallyd, which, signal)),
    drainRefetch: (signal) => step(drainStripeRefetch(tallyd, signal)),
    scanChains: (signal) => step(scanChains(tallyd, { signal })),
    resolve: (signal) => step(resolveRows(tallyd, false, signal)),
    deliver: async (signal) => {
      const { counts } = await deliverAlerts(tallyd, { early: false, afterStart, signal });
      afterStart = false;
      return counts;
    },
    judgeSources: (signal) => step(judgeAllSources(tallyd, { signal, jobs: hooks.unhealthyJobs })),
    audit: (signal) => step(auditOperations(tallyd, { signal })),
    tellDay: async () => ({ ...(await tellDay(tallyd, await tallyd.now())) }),
    heartbeat: async (signal) => ({ ...(await hooks.heartbeat?.beat(signal)) }),
  };
}
