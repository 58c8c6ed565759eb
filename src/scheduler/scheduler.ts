/**
 * The timetable on one replica: node-cron fires, a coordinator kept in PostgreSQL elects one
 * replica per tick, a watchdog notices sleep and clock changes (case B43).
 */
import { createTask } from "node-cron";
import type { Logger, RunCoordinator, ScheduledTask } from "node-cron";

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { cronOf } from "./cadence.ts";
import type { Job } from "./job.ts";
import { createJobRunner, lockOf } from "./job-runner.ts";
import type { JobRunner, JobStats, RunnerDeps } from "./job-runner.ts";

/** A running timetable. */
export interface Scheduler {
  /** Starts the beats and runs at once what is due. */
  readonly start: () => void;
  /** No new runs; waits `graceMs`, then aborts what still runs and gives its ticks back. */
  readonly stop: (graceMs: number) => Promise<void>;
  /** Aborts the runs that a lost lock session guarded. */
  readonly locksLost: (locks: readonly string[]) => void;
  /** Counters of this replica by job. */
  readonly stats: () => ReadonlyMap<string, Readonly<JobStats>>;
}

interface Entry {
  readonly runner: JobRunner;
  readonly task: ScheduledTask;
  readonly attempt: () => Promise<void>;
}

/** How the watchdog looks for sleep and clock changes. */
export interface Watch {
  /** How often the wall clock is compared with the monotonic one. */
  readonly watchMs: number;
  /** A gap beyond this is sleep or a changed clock; below it, a busy machine. */
  readonly jumpMinMs: number;
}

const WATCH: Watch = { watchMs: 5_000, jumpMinMs: 30_000 };
// Aborted runs have this long to return their work before the process goes on without them.
const ABORT_WAIT_MS = 1_500;
// node-cron drops a tick that is later than this; a late run is always better than none.
const LATE_MAX_MS = Number.MAX_SAFE_INTEGER;

/** Makes the timetable of `jobs`; nothing runs before `start`. */
export function createScheduler<Deps>(
  base: RunnerDeps,
  jobs: readonly Job<Deps>[],
  deps: Deps,
  watch: Watch = WATCH,
): Scheduler {
  const entries = jobs.map((job) => makeEntry(base, job, createJobRunner(base, job, deps)));
  let stopWatch: (() => void) | undefined;
  let stopped = false;

  const catchUp = (): void => {
    for (const entry of entries) void entry.attempt();
  };
  const restart = (): void => {
    // Timers armed before a jump point to the wrong moment, maybe an hour away.
    for (const { task } of entries) {
      void task.stop();
      void task.start();
    }
    catchUp();
  };
  return {
    start: () => {
      for (const { task } of entries) void task.start();
      stopWatch = watchClock(base, watch, () => {
        if (!stopped) restart();
      });
      catchUp();
    },
    stop: async (graceMs) => {
      stopped = true;
      stopWatch?.();
      for (const { task } of entries) void task.destroy();
      const idle = Promise.all(entries.map(({ runner }) => runner.close()));
      if (await settles(idle, graceMs)) return;
      for (const { runner } of entries) runner.abort("tallyd is stopping");
      if (await settles(idle, ABORT_WAIT_MS)) return;
      const busy = entries.filter(({ runner }) => runner.stats.running);
      base.log.warn("jobs did not stop in time: their work is free once the process is gone", {
        jobs: busy.map(({ runner }) => runner.name),
      });
    },
    locksLost: (locks) => {
      for (const { runner } of entries) {
        if (locks.includes(lockOf(runner.name))) runner.abort("the database connection was lost");
      }
    },
    stats: () => new Map(entries.map(({ runner }) => [runner.name, runner.stats])),
  };
}

function makeEntry<Deps>(base: RunnerDeps, job: Job<Deps>, runner: JobRunner): Entry {
  const elect = async (slot: Date): Promise<boolean> => {
    try {
      return await runner.elect(slot);
    } catch (error) {
      base.log.debug(`job ${job.name}: no election, the database is out of reach`, { error });
      return false;
    }
  };
  const coordinator: RunCoordinator = {
    // The key is "<name>:<slot as ISO>"; names hold no colon.
    shouldRun: (key) => elect(new Date(key.slice(key.indexOf(":") + 1))),
  };
  const task = createTask(cronOf(job.schedule), () => runner.run(), {
    name: job.name,
    timezone: "UTC",
    noOverlap: true,
    distributed: true,
    runCoordinator: coordinator,
    missedExecutionTolerance: LATE_MAX_MS,
    suppressMissedWarning: true,
    logger: cronLogger(base.log),
  });
  task.on("execution:overlap", (context) => {
    runner.overlap(context.date);
  });
  const attempt = async (): Promise<void> => {
    if (await elect(base.clock.now())) await runner.run();
  };
  return { runner, task, attempt };
}

/** Calls `onJump` after sleep, a freeze, or a step of the wall clock in either direction. */
function watchClock(
  base: { readonly clock: Clock; readonly log: Log },
  { watchMs, jumpMinMs }: Watch,
  onJump: () => void,
): () => void {
  let wall = base.clock.now().getTime();
  let steady = performance.now();
  const timer = setInterval(() => {
    const wallGap = base.clock.now().getTime() - wall;
    const steadyGap = performance.now() - steady;
    wall += wallGap;
    steady += steadyGap;
    const jump = Math.abs(wallGap - watchMs) > jumpMinMs || steadyGap - watchMs > jumpMinMs;
    if (!jump) return;
    base.log.warn("the process slept or the clock was changed: every job runs once now", {
      missing_ms: Math.round(wallGap - watchMs),
    });
    onJump();
  }, watchMs);
  return (): void => {
    clearInterval(timer);
  };
}

/** True when `work` settles within `waitMs`; it goes on all the same. */
export async function settles(work: Promise<unknown>, waitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => {
      resolve(false);
    }, waitMs);
  });
  const done = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return done;
}

/** node-cron's own words are of use to nobody but a developer. */
function cronLogger(log: Log): Logger {
  const line = (message: string | Error, error?: Error): void => {
    const text = message instanceof Error ? message.message : message;
    log.debug(`node-cron: ${text}`, error === undefined ? {} : { error });
  };
  return { info: line, warn: line, error: line, debug: line };
}
