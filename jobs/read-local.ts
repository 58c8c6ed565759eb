import type { JobDeps } from "../src/daemon/work.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Changed rows of the team's table, a few seconds after they changed. */
export function readLocal(settings: Settings): Job<JobDeps> {
  return {
    name: "read-local",
    schedule: { everyMs: settings.beats.localMs },
    // A first read of a table with millions of rows; after that it takes milliseconds.
    timeoutMs: 600_000,
    runs: "cluster",
    runOnce: ({ work }) => work.readLocal("changes"),
  };
}
