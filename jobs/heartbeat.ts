import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Tells an outside watch that tallyd is alive and well; only when it is. */
export const heartbeat: Job<JobDeps> = {
  name: "heartbeat",
  // The shortest period that outside watches offer is a minute.
  schedule: { everyMs: 60_000 },
  timeoutMs: 30_000,
  runs: "cluster",
  runOnce: ({ work }, signal) => work.heartbeat(signal),
};
