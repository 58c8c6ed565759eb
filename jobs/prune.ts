import { addMs } from "../src/core/clock.ts";
import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";
import { pruneEvents } from "../src/store/inbox.ts";
import { pruneJobRuns } from "../src/store/job-runs.ts";
import { pruneLooks } from "../src/store/looks.ts";

const DAY_MS = 86_400_000;
// Two days of runs show a person what last night did.
const RUNS_KEPT_MS = 2 * DAY_MS;
// A look proves something for minutes; thirty days of them show how a verdict came about.
const LOOKS_KEPT_MS = 30 * DAY_MS;
const LOOKS_MAX = 10_000;

/** Forgets what nobody needs any more, in bounded batches. */
export const prune: Job<JobDeps> = {
  name: "prune",
  // Often enough that a batch's bound keeps up with the busiest beats.
  schedule: { everyMs: 3_600_000 },
  timeoutMs: 300_000,
  runs: "cluster",
  runOnce: async ({ pool, clock }) => {
    const now = clock.now();
    const looks = { before: addMs(now, -LOOKS_KEPT_MS), limit: LOOKS_MAX };
    return {
      events: await pruneEvents(pool, { now }),
      runs: await pruneJobRuns(pool, addMs(now, -RUNS_KEPT_MS)),
      looks: await pruneLooks(pool, looks),
    };
  },
};
