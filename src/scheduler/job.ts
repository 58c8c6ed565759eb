/** When a job is due: a cron expression with seconds, in UTC, or a plain interval. */
export type Schedule = { readonly cron: string; readonly everyMs: number } | IntervalSchedule;

/** Whole seconds in milliseconds; windows are aligned to the Unix epoch, so replicas agree. */
export interface IntervalSchedule {
  readonly everyMs: number;
}

/** What a run did, by name; stored with the run, logged only when one is not zero. */
export type JobCounts = Readonly<Record<string, number>>;

/**
 * One scheduled piece of work: when, for how long at most, and one call. The work window comes
 * from what the job itself stored (cursors, due times), never from the schedule, so a tick that
 * was missed loses nothing (case B43).
 */
export interface Job<Deps> {
  /** Kebab case, stable: it names the lock, the rows of `tallyd.job_run` and the metrics. */
  readonly name: string;
  readonly schedule: Schedule;
  /** The signal is aborted after this many milliseconds. */
  readonly timeoutMs: number;
  /**
   * `cluster`: one replica per tick, elected in PostgreSQL. `replica`: every replica for itself,
   * without a record; for work that is cheap and claims what it does on its own.
   */
  readonly runs: "cluster" | "replica";
  /** Must stop soon after `signal` is aborted and may be started again at any point. */
  readonly runOnce: (deps: Deps, signal: AbortSignal) => Promise<JobCounts>;
}
