import type { JobDeps } from "../src/daemon/work.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Every row of the team's table: finds changes without a new time, and rows that are gone. */
export function readLocalFull(settings: Settings): Job<JobDeps> {
  return {
    name: "read-local-full",
    schedule: { everyMs: settings.beats.localFullMs },
    timeoutMs: 1_800_000,
    runs: "cluster",
    runOnce: ({ work }) => work.readLocal("sweep"),
  };
}
