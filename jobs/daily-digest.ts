import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Once a day a line that proves the watch is alive. */
export const dailyDigest: Job<JobDeps> = {
  name: "daily-digest",
  // The wall clock is looked at each minute: no schedule in UTC hits an hour of a zone all year.
  schedule: { everyMs: 60_000 },
  timeoutMs: 120_000,
  runs: "cluster",
  runOnce: ({ work }) => work.tellDay(),
};
