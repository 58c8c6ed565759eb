import type { JobDeps } from "../src/daemon/work.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Job } from "../src/scheduler/job.ts";

/** New blocks of all chains; what is final moves the cursor, what is not is read anew each time. */
export function scanChains(settings: Settings): Job<JobDeps> {
  return {
    name: "scan-chains",
    schedule: { everyMs: settings.beats.chainsMs },
    // The first scan of a long history, at a free plan's ten blocks a request.
    timeoutMs: 3_600_000,
    runs: "cluster",
    runOnce: ({ work }, signal) => work.scanChains(signal),
  };
}
