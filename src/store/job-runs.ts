/** The only writer of `tallyd.job_run`: one row per job and tick, with its result. */
import type { JobCounts } from "../scheduler/job.ts";
import type { Db } from "./pool.ts";

/** Identity of one run. */
export interface JobTick {
  readonly job: string;
  /** Start of the window; the same on all replicas. */
  readonly tickAt: Date;
}

/** How one run ended. */
export interface JobEnd {
  readonly finishedAt: Date;
  readonly result: JobCounts | null;
  /** Without secrets; null: it succeeded. */
  readonly error: string | null;
}

/** The newest runs of one job. */
export interface JobRecord {
  readonly job: string;
  readonly lastStartedAt: Date;
  /** Null: no run has ever succeeded. */
  readonly lastOkAt: Date | null;
  /** How long the newest successful run took, milliseconds; null: none has. */
  readonly lastOkMs: number | null;
  /** Error of the newest ended run; null: it succeeded, or none has ended. */
  readonly lastError: string | null;
  /** The newest run has not ended. */
  readonly running: boolean;
}

// The column holds 2000 characters; a longer error says nothing more.
const ERROR_CHARS_MAX = 2_000;
// One statement's worth of old rows; the next pruning takes the rest.
const PRUNE_ROWS_MAX = 10_000;

/** Who claims a tick, and when by that replica's clock. */
export interface Claim {
  readonly replica: string;
  readonly startedAt: Date;
  /** Rows of later ticks than this can only come from a clock that was set back since. */
  readonly futureAfter: Date;
}

/**
 * Claims a tick. The caller must hold the job's lock: then an unfinished row of the same tick is
 * left over from a replica that died, and is taken over. False: the tick is done. Rows of ticks
 * that lie in the future are deleted, or a clock that was an hour fast and is set right would
 * stop the job for that hour (case B43).
 */
export async function claimTick(db: Db, tick: JobTick, claim: Claim): Promise<boolean> {
  const claimed = await db.query(
    `with future as (delete from tallyd.job_run
                      where job = $1
                        and tick_at > $5)
     insert into tallyd.job_run (job, tick_at, replica, started_at)
     values ($1, $2, $3, $4)
     on conflict (job, tick_at) do update
        set replica = excluded.replica,
            started_at = excluded.started_at
      where job_run.finished_at is null
     returning job`,
    [tick.job, tick.tickAt, claim.replica, claim.startedAt, claim.futureAfter],
  );
  return claimed.rowCount === 1;
}

/** Stores how a run ended; a run that another replica has taken over is left alone. */
export async function finishTick(
  db: Db,
  tick: JobTick,
  replica: string,
  end: JobEnd,
): Promise<void> {
  await db.query(
    `update tallyd.job_run
        set finished_at = $4,
            result = $5,
            error = $6
      where job = $1
        and tick_at = $2
        and replica = $3
        and finished_at is null`,
    [
      tick.job,
      tick.tickAt,
      replica,
      end.finishedAt,
      end.result === null ? null : JSON.stringify(end.result),
      end.error === null ? null : end.error.slice(0, ERROR_CHARS_MAX),
    ],
  );
}

/** Gives a tick back that was claimed and not finished, so that any replica may run it. */
export async function returnTick(db: Db, tick: JobTick, replica: string): Promise<void> {
  await db.query(
    `delete from tallyd.job_run
      where job = $1
        and tick_at = $2
        and replica = $3
        and finished_at is null`,
    [tick.job, tick.tickAt, replica],
  );
}

/** The newest runs of each of these jobs; a job that never ran is not in the answer. */
export async function readJobRecords(db: Db, jobs: readonly string[]): Promise<JobRecord[]> {
  const found = await db.query<JobRecord>(
    `select j.job,
            newest.started_at as "lastStartedAt",
            ok.finished_at as "lastOkAt",
            (extract(epoch from ok.finished_at - ok.started_at) * 1000)::float8 as "lastOkMs",
            ended.error as "lastError",
            newest.finished_at is null as running
       from unnest($1::text[]) as j (job)
       join lateral (select r.started_at, r.finished_at
                       from tallyd.job_run r
                      where r.job = j.job
                      order by r.started_at desc
                      limit 1) as newest on true
       left join lateral (select r.started_at, r.finished_at
                            from tallyd.job_run r
                           where r.job = j.job
                             and r.finished_at is not null
                             and r.error is null
                           order by r.started_at desc
                           limit 1) as ok on true
       left join lateral (select r.error
                            from tallyd.job_run r
                           where r.job = j.job
                             and r.finished_at is not null
                           order by r.started_at desc
                           limit 1) as ended on true
      order by j.job`,
    [jobs],
  );
  return found.rows;
}

/** Deletes runs that started before `before`, but the newest successful one of each job. */
export async function pruneJobRuns(db: Db, before: Date): Promise<number> {
  const pruned = await db.query(
    `delete from tallyd.job_run d
      using (select r.job, r.tick_at
               from tallyd.job_run r
              where r.started_at < $1
                and exists (select 1
                              from tallyd.job_run later
                             where later.job = r.job
                               and later.started_at > r.started_at
                               and later.finished_at is not null
                               and (later.error is null or r.error is not null))
              limit $2) as old
      where d.job = old.job
        and d.tick_at = old.tick_at`,
    [before, PRUNE_ROWS_MAX],
  );
  return pruned.rowCount ?? 0;
}

/**
 * The newest run of a job whose stored result has this count; null: there is none. For jobs whose
 * next run depends on what the last one found.
 */
export async function lastResultWith(
  db: Db,
  job: string,
  name: string,
): Promise<{ readonly finishedAt: Date; readonly value: number } | null> {
  const found = await db.query<{ finishedAt: Date; value: number }>(
    `select r.finished_at as "finishedAt",
            (r.result ->> $2)::float8 as value
       from tallyd.job_run r
      where r.job = $1
        and r.finished_at is not null
        and r.result ? $2
      order by r.started_at desc
      limit 1`,
    [job, name],
  );
  return found.rows[0] ?? null;
}
