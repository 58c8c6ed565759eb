import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Ambiguous rows whose next look is due, by the ladder or because a new fact woke them. */
export const resolve: Job<JobDeps> = {
  name: "resolve",
  schedule: { everyMs: 5_000 },
  // A backlog of a thousand rows, most with look-ups at Stripe's pace.
  timeoutMs: 600_000,
  runs: "cluster",
  runOnce: ({ work }, signal) => work.resolve(signal),
};
