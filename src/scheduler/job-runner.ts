/** One job on one replica: elected, run with a time-out, recorded, and given back. */
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import { addMs } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { messageOf } from "../core/message.ts";
import { claimTick, finishTick, returnTick } from "../store/job-runs.ts";
import type { JobTick } from "../store/job-runs.ts";
import { tickOf } from "./cadence.ts";
import type { Job, JobCounts } from "./job.ts";
import type { LockSession } from "./lock-session.ts";

/** What a runner needs besides its job and the job's own deps. */
export interface RunnerDeps {
  readonly pool: Pool;
  readonly locks: LockSession;
  readonly clock: Clock;
  readonly log: Log;
  /** Unique per process. */
  readonly replica: string;
}

/** What happened to a job on this replica since it started; for the metrics. */
export interface JobStats {
  runs: number;
  failures: number;
  timeouts: number;
  /** Ticks skipped because the run before was still going. */
  overlaps: number;
  /** Ticks that another replica ran. */
  notElected: number;
  /** Duration of the newest run, milliseconds; null: none yet. */
  lastMs: number | null;
  lastOkAt: Date | null;
  lastError: string | null;
  running: boolean;
}

/** See {@link createJobRunner}. */
export interface JobRunner {
  readonly name: string;
  readonly stats: JobStats;
  /** May this replica run the tick of `slot`? True: {@link JobRunner.run} must follow. */
  readonly elect: (slot: Date) => Promise<boolean>;
  /** Runs an elected tick to its end; never throws. */
  readonly run: () => Promise<void>;
  /** Counts a tick that came while the run before was still going. */
  readonly overlap: (slot: Date) => void;
  /** Aborts the run under way with `reason`; its tick is given back. */
  readonly abort: (reason: string) => void;
  /** Elects no more; settles when no run is under way. */
  readonly close: () => Promise<void>;
}

// Two replicas' clocks may differ by this much before a later tick counts as one of the future.
const CLOCK_SKEW_MAX_MS = 60_000;

/** Makes the runner of `job`; `deps` are what the job's own call gets. */
export function createJobRunner<Deps>(base: RunnerDeps, job: Job<Deps>, deps: Deps): JobRunner {
  const stats = freshStats();
  // The tick that is being elected or run, and who waits for its end.
  let busy: { readonly tick: JobTick; readonly done: Promise<void>; end: () => void } | undefined;
  // The newest tick that is known to be done: saves asking the database at finer cron beats.
  let settledAt = Number.NEGATIVE_INFINITY;
  let overlappedAt = Number.NEGATIVE_INFINITY;
  let controller: AbortController | undefined;
  let aborted: string | undefined;
  let closing = false;

  const free = (): void => {
    busy?.end();
    busy = undefined;
    controller = undefined;
  };
  const overlap = (slot: Date): void => {
    const at = tickOf(job.schedule, slot).getTime();
    // A finer cron beat may meet one window several times; it is one skipped tick.
    if (busy !== undefined && at > busy.tick.tickAt.getTime() && at > overlappedAt) {
      overlappedAt = at;
      stats.overlaps += 1;
    }
  };
  const elect = async (slot: Date): Promise<boolean> => {
    if (busy !== undefined) {
      overlap(slot);
      return false;
    }
    const tick: JobTick = { job: job.name, tickAt: tickOf(job.schedule, slot) };
    if (closing || tick.tickAt.getTime() === settledAt) return false;
    busy = { tick, ...deferred() };
    let won = false;
    try {
      won = job.runs === "replica" || (await claim(base, job, tick));
      if (!won) stats.notElected += 1;
    } finally {
      if (!won) free();
    }
    return won;
  };
  const run = async (): Promise<void> => {
    if (busy === undefined) return;
    const { tick } = busy;
    aborted = closing ? "tallyd is stopping" : undefined;
    controller = new AbortController();
    const ended = closing ? NOT_BEGUN : await attempt(base, job, deps, { stats, controller });
    // An aborted run that ended well all the same is done; any other is given back.
    const returned = aborted !== undefined && ended.error !== null;
    if (!returned) settledAt = tick.tickAt.getTime();
    if (job.runs === "cluster") await record(base, tick, returned ? undefined : ended);
    free();
  };
  return {
    name: job.name,
    stats,
    elect,
    run,
    overlap,
    abort: (reason) => {
      aborted = reason;
      controller?.abort(new Error(reason));
    },
    close: () => {
      closing = true;
      return busy?.done ?? Promise.resolve();
    },
  };
}

function deferred(): { readonly done: Promise<void>; end: () => void } {
  let end = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end };
}

interface Ended {
  readonly counts: JobCounts | null;
  readonly error: string | null;
}

const NOT_BEGUN: Ended = { counts: null, error: "tallyd is stopping" };

async function claim<Deps>(base: RunnerDeps, job: Job<Deps>, tick: JobTick): Promise<boolean> {
  const lock = lockOf(job.name);
  if (!(await base.locks.tryLock(lock))) return false;
  let won = false;
  try {
    won = await claimTick(base.pool, tick, {
      replica: base.replica,
      startedAt: base.clock.now(),
      futureAfter: addMs(tick.tickAt, Math.max(job.schedule.everyMs, CLOCK_SKEW_MAX_MS)),
    });
  } finally {
    if (!won) await base.locks.unlock(lock);
  }
  return won;
}

/** The job's call with its time-out; errors become values. */
async function attempt<Deps>(
  base: RunnerDeps,
  job: Job<Deps>,
  deps: Deps,
  run: { readonly stats: JobStats; readonly controller: AbortController },
): Promise<Ended> {
  const { stats, controller } = run;
  const startedAt = base.clock.now().getTime();
  stats.running = true;
  const timer = setTimeout(() => {
    stats.timeouts += 1;
    controller.abort(new Error(`time-out after ${String(job.timeoutMs)} ms`));
  }, job.timeoutMs);
  let ended: Ended;
  try {
    const counts = await job.runOnce(deps, controller.signal);
    ended = { counts, error: null };
    stats.lastOkAt = base.clock.now();
    if (Object.values(counts).some((count) => count !== 0)) {
      base.log.info(`job ${job.name} done`, counts);
    }
  } catch (error) {
    ended = { counts: null, error: messageOf(error) };
    stats.failures += 1;
    base.log.warn(`job ${job.name} failed: it is tried again at its next tick`, { error });
  } finally {
    clearTimeout(timer);
  }
  stats.running = false;
  stats.runs += 1;
  stats.lastMs = base.clock.now().getTime() - startedAt;
  stats.lastError = ended.error;
  return ended;
}

/**
 * Writes the run down (undefined: gives the tick back) and frees the lock. A database that is
 * gone is not an error of the job: the connection took the lock with it.
 */
async function record(base: RunnerDeps, tick: JobTick, ended: Ended | undefined): Promise<void> {
  try {
    if (ended === undefined) {
      await returnTick(base.pool, tick, base.replica);
    } else {
      const end = { finishedAt: base.clock.now(), result: ended.counts, error: ended.error };
      await finishTick(base.pool, tick, base.replica, end);
    }
    await base.locks.unlock(lockOf(tick.job));
  } catch (error) {
    base.log.warn(`the run of job ${tick.job} could not be recorded`, { error });
  }
}

/** Name of the session lock that guards a job across replicas. */
export function lockOf(job: string): string {
  return `job:${job}`;
}

function freshStats(): JobStats {
  return {
    runs: 0,
    failures: 0,
    timeouts: 0,
    overlaps: 0,
    notElected: 0,
    lastMs: null,
    lastOkAt: null,
    lastError: null,
    running: false,
  };
}
