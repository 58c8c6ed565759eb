import type { JobDeps } from "../src/daemon/work.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Payment intents and charges by creation: what absence is proven by. */
export function walkLists(settings: Settings): Job<JobDeps> {
  return {
    name: "walk-lists",
    schedule: { everyMs: settings.beats.listsMs },
    // The first walk goes back 48 hours or more.
    timeoutMs: 1_800_000,
    runs: "cluster",
    runOnce: ({ work }, signal) => work.walkLists("proof", signal),
  };
}
