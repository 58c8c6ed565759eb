import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Is tallyd itself blind, misconfigured, or unable to tell anybody? */
export const judgeSources: Job<JobDeps> = {
  name: "judge-sources",
  schedule: { everyMs: 60_000 },
  timeoutMs: 60_000,
  runs: "cluster",
  runOnce: ({ work }, signal) => work.judgeSources(signal),
};
