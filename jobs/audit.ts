import type { JobDeps } from "../src/daemon/work.ts";
import type { Settings } from "../src/core/settings.ts";
import type { Job } from "../src/scheduler/job.ts";

/** Every operation judged anew: what a missed change would have hidden comes out here. */
export function audit(settings: Settings): Job<JobDeps> {
  return {
    name: "audit",
    schedule: { everyMs: settings.beats.auditMs },
    // Ten million operations; a run that is cut off starts anew at the next beat.
    timeoutMs: 3_600_000,
    runs: "cluster",
    runOnce: ({ work }, signal) => work.audit(signal),
  };
}
