import type { JobDeps } from "../src/daemon/work.ts";
import { comeBack } from "../src/incident/come-back.ts";
import { remindDue } from "../src/incident/remind.ts";
import type { Job } from "../src/scheduler/job.ts";
import { databaseNow } from "../src/store/database-now.ts";

/** What was kept quiet comes back, and criticals that nobody has acknowledged are told again. */
export const remind: Job<JobDeps> = {
  name: "remind",
  // The shortest wait is a minute, and nobody misses a reminder by seconds.
  schedule: { everyMs: 60_000 },
  timeoutMs: 60_000,
  runs: "cluster",
  runOnce: async ({ pool, settings }) => {
    const now = await databaseNow(pool);
    const back = await comeBack({ pool, settings }, now);
    return { ...back, ...(await remindDue({ pool, settings }, now)) };
  },
};
