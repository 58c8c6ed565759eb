import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Objects that must be read by id to be believed. */
export const drainRefetch: Job<JobDeps> = {
  name: "drain-refetch",
  // An event without a body (a thin one) is told with this delay.
  schedule: { everyMs: 2_000 },
  timeoutMs: 120_000,
  runs: "cluster",
  runOnce: ({ work }, signal) => work.drainRefetch(signal),
};
