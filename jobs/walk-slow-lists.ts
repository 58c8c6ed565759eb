import type { JobDeps } from "../src/daemon/work.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Job } from "../src/scheduler/job.ts";

// Events keep refunds and disputes up to date; the lists only catch events that never came.
const SLOWER = 6;

/** Refunds and disputes by creation. */
export function walkSlowLists(settings: Settings): Job<JobDeps> {
  return {
    name: "walk-slow-lists",
    schedule: { everyMs: settings.beats.listsMs * SLOWER },
    timeoutMs: 1_800_000,
    runs: "cluster",
    runOnce: ({ work }, signal) => work.walkLists("slow", signal),
  };
}
