import type { JobDeps } from "../src/daemon/work.ts";
import { remindDue } from "../src/incident/remind.ts";
import type { Job } from "../src/scheduler/job.ts";
import { databaseNow } from "../src/store/database-now.ts";

/** Criticals that nobody has acknowledged are told again. */
export const remind: Job<JobDeps> = {
  name: "remind",
  // The shortest wait is a minute, and nobody misses a reminder by seconds.
  schedule: { everyMs: 60_000 },
  timeoutMs: 60_000,
  runs: "cluster",
  runOnce: async ({ pool, settings }) => ({
    ...(await remindDue({ pool, settings }, await databaseNow(pool))),
  }),
};
