import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/**
 * Stripe's events list. The job asks often whether a sweep is due; how often one is (EVENTS_BEAT)
 * adapts to what webhooks missed and to the read budget.
 */
export const sweepEvents: Job<JobDeps> = {
  name: "sweep-events",
  schedule: { everyMs: 30_000 },
  // Thirty days of a busy account after a long stop, at Stripe's pace.
  timeoutMs: 1_800_000,
  runs: "cluster",
  runOnce: ({ work }, signal) => work.sweepEvents(signal),
};
