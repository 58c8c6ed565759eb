import type { Pool } from "pg";
import type { Clock } from "../../core/clock.ts";
import type { UnreadableCode } from "../../core/errors.ts";
import { UnreadableError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { SourceKey } from "../../store/sources.ts";
import { markFailed, markOk } from "../../store/sources.ts";

/** A source that could not be completely read. */
export interface FailedSource extends SourceKey {
  readonly code: UnreadableCode;
  readonly message: string;
}

/** What became of a run over several sources: one that fails does not stop the others. */
export interface RunResult {
  readonly ok: boolean;
  readonly failed: readonly FailedSource[];
}

/** What the runner needs. */
export interface RunDeps {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
}

/** One source in one scope and how to read it. */
export interface SourceTask extends SourceKey {
  readonly run: () => Promise<void>;
  /** Up to when a success shows the source to be read; default now. For ranges in the past. */
  readonly okAt?: Date;
}

/**
 * Runs the tasks in their order (`atOnce` at a time, default one) and notes each outcome in
 * `tallyd.source`. A task that cannot read is told in the result; any other fault is thrown after
 * the rest has had its turn; an abort ends the run.
 */
export async function runTasks(
  deps: RunDeps,
  tasks: readonly SourceTask[],
  options: { readonly atOnce?: number } = {},
): Promise<RunResult> {
  const waiting = [...tasks];
  const failed: FailedSource[] = [];
  const faults: Error[] = [];
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      try {
        const failure = await runTask(deps, task);
        if (failure !== null) failed.push(failure);
      } catch (error) {
        // Whoever stopped this run wants none of the rest.
        if (isAbort(error)) waiting.length = 0;
        faults.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
  };
  await Promise.all(Array.from({ length: options.atOnce ?? 1 }, work));
  const abort = faults.find(isAbort);
  if (abort !== undefined) throw abort;
  const [fault] = faults;
  if (fault !== undefined && faults.length === 1) throw fault;
  if (faults.length > 1) throw new AggregateError(faults, "several sources met a fault of tallyd");
  return { ok: failed.length === 0, failed };
}

/** Runs one task; `null`: it was completely read. */
async function runTask(deps: RunDeps, task: SourceTask): Promise<FailedSource | null> {
  const { source, scope } = task;
  try {
    await task.run();
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    const failure = { source, scope, code: error.code, message: error.message };
    deps.log.warn("a source could not be completely read", { ...failure });
    await markFailed(deps.pool, { ...failure, at: deps.clock.now() });
    return failure;
  }
  const now = deps.clock.now();
  const at = task.okAt !== undefined && task.okAt < now ? task.okAt : now;
  await markOk(deps.pool, { source, scope, at });
  return null;
}

/** True for what an aborted signal throws. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
