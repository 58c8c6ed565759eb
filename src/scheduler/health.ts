import type { Clock } from "../core/clock.ts";
import type { Db } from "../store/pool.ts";
import { readJobRecords } from "../store/job-runs.ts";
import type { Job } from "./job.ts";

/** A job that does not do its work. */
export interface UnhealthyJob {
  readonly job: string;
  /** Newest success of any replica; null: never. */
  readonly lastOkAt: Date | null;
  /** Whole periods since then. */
  readonly periodsMissed: number;
  readonly lastError: string | null;
}

// One missed period is a slow run, two may be a restart; the third is a dead job (case B43).
const PERIODS_MAX = 3;
// Beats of seconds would cry at every restart of a database.
const SILENCE_MIN_MS = 60_000;

/**
 * The jobs that no replica finished successfully for three periods. `since` is when this process
 * started: before that nobody may have been there to run them.
 */
export async function jobHealth<Deps>(
  deps: { readonly db: Db; readonly clock: Clock },
  jobs: readonly Job<Deps>[],
  since: Date,
): Promise<UnhealthyJob[]> {
  const cluster = jobs.filter((job) => job.runs === "cluster");
  const records = await readJobRecords(
    deps.db,
    cluster.map((job) => job.name),
  );
  const byName = new Map(records.map((record) => [record.job, record]));
  const now = deps.clock.now().getTime();
  return cluster.flatMap((job) => {
    const record = byName.get(job.name);
    const lastOkAt = record?.lastOkAt ?? null;
    const silentMs = now - Math.max(lastOkAt?.getTime() ?? 0, since.getTime());
    // A long time-out is a promise that a run may take that long.
    const periodMs = Math.max(job.schedule.everyMs, job.timeoutMs);
    if (silentMs <= Math.max(PERIODS_MAX * periodMs, SILENCE_MIN_MS)) return [];
    const periodsMissed = Math.floor(silentMs / job.schedule.everyMs);
    return [{ job: job.name, lastOkAt, periodsMissed, lastError: record?.lastError ?? null }];
  });
}
