/** One complete pass over all sources, in order: what `tallyd once` does. */
import { addAllDue } from "../store/due.ts";
import type { JobCounts } from "../scheduler/job.ts";
import { scanChains } from "./chain-steps.ts";
import type { ScanInput } from "./chain-steps.ts";
import { fastUntilQuiet } from "./fast-path.ts";
import {
  deliverAlerts,
  drainStripeRefetch,
  judgeAllSources,
  readLocal,
  resolveRows,
  sweepStripeEvents,
  unreadableLooks,
  walkStripeLists,
} from "./steps.ts";
import type { StepFailure, StepResult } from "./steps.ts";
import type { Tallyd } from "./tallyd.ts";

/** What a pass did and what it could not read. */
export interface PassReport {
  /** Counts by step. */
  readonly steps: Readonly<Record<string, JobCounts>>;
  readonly failures: readonly StepFailure[];
}

/** How a pass is run. */
export interface PassOptions {
  /** Every row of the team's table, or only what changed. */
  readonly full: boolean;
  readonly signal: AbortSignal;
  /** Told of each step as it begins. */
  readonly onStep?: (step: string) => void;
  /** How far the scan of a chain is. */
  readonly onScan?: NonNullable<ScanInput["onProgress"]>;
}

// Objects may name further ones; each round of look-ups goes one step deeper. A payment is four
// objects deep (dispute, charge, intent, refund), and what is left over stays in the queue.
const REFETCH_ROUNDS_MAX = 20;
// Ten batches of the judge: a few seconds.
const JUDGE_ALL_MAX = 5_000;
// Alerts of one pass; one that has more tells the rest at the daemon's next beat or pass.
const DELIVER_MAX = 1_000;

/**
 * Reads the team's table, sweeps the events, walks the lists up to now less the safety lag, reads
 * the chains up to their final blocks, applies,
 * reads by id what waits for it, matches, judges (with direct looks before absence is spoken),
 * resolves every ambiguous row whatever its ladder, judges again, and delivers. A source that
 * cannot be read is told in `failures` and does not stop the others.
 */
export async function onePass(tallyd: Tallyd, options: PassOptions): Promise<PassReport> {
  const { signal, onScan } = options;
  const scan = { signal, wait: true, ...(onScan === undefined ? {} : { onProgress: onScan }) };
  const steps: Record<string, JobCounts> = {};
  const failures: StepFailure[] = [];
  const step = async (name: string, work: () => Promise<StepResult>): Promise<StepResult> => {
    signal.throwIfAborted();
    options.onStep?.(name);
    const result = await work();
    steps[name] = addCounts(steps[name], result.counts);
    failures.push(...result.failures);
    return result;
  };
  const judge = (): Promise<StepResult> =>
    step("judge", async () => {
      const { unreadable, ...counts } = await fastUntilQuiet(tallyd, signal);
      return { counts: { ...counts, unreadable }, failures: unreadableLooks(unreadable) };
    });

  await step("local", () => readLocal(tallyd, options.full ? "sweep" : "changes"));
  await step("events", () => sweepStripeEvents(tallyd, signal));
  await step("lists", () => walkStripeLists(tallyd, "all", signal));
  await step("chains", () => scanChains(tallyd, scan));
  for (let round = 0; round < REFETCH_ROUNDS_MAX; round += 1) {
    await judge();
    const { counts } = await step("refetch", () => drainStripeRefetch(tallyd, signal));
    if ((counts["fetched"] ?? 0) + (counts["missing"] ?? 0) === 0) break;
  }
  await step("resolve", () => resolveRows(tallyd, true, signal));
  // Thresholds may have changed since the last pass, and time has passed: everything is judged
  // anew where that is cheap; `audit` does it at any size.
  await addAllDue(tallyd.pool, { at: await tallyd.now(), limit: JUDGE_ALL_MAX });
  // What was written to the team's table is read back, so that its incidents close in this pass.
  await step("local", () => readLocal(tallyd, "changes"));
  await judge();
  const sources = (): Promise<StepResult> =>
    step("sources", () => judgeAllSources(tallyd, { signal }));
  await sources();
  const delivered = await step("deliver", () =>
    deliverAlerts(tallyd, { early: true, afterStart: true, limit: DELIVER_MAX, signal }),
  );
  // Only now is it known that a way out is dead.
  if (delivered.failures.length > 0) await sources();
  return { steps, failures: distinct(failures) };
}

function addCounts(before: JobCounts | undefined, now: JobCounts): JobCounts {
  const sum: Record<string, number> = { ...before };
  for (const [name, count] of Object.entries(now)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** The same source may fail in several steps; it is one thing to see to. */
function distinct(failures: readonly StepFailure[]): StepFailure[] {
  const seen = new Map(failures.map((one) => [`${one.source} ${one.scope} ${one.code}`, one]));
  return [...seen.values()];
}
