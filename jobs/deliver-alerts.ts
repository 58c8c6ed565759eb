import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/**
 * Messages that wait: for the end of a pause, for company, or from a replica that died. Fresh ones
 * do not wait for this beat: the fast path delivers them at once.
 */
export const deliverAlerts: Job<JobDeps> = {
  name: "deliver-alerts",
  schedule: { everyMs: 10_000 },
  timeoutMs: 120_000,
  runs: "cluster",
  runOnce: ({ work }, signal) => work.deliver(signal),
};
