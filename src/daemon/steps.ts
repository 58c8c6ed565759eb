/** The pieces of work that jobs and complete passes are made of; each returns counts. */
import { deliverDue } from "../alert/deliver.ts";
import { hookFindings, hookHealth } from "../alert/hook-health.ts";
import { auditAll, judgeSources } from "../detect/judge.ts";
import type { JudgeDeps } from "../detect/judge.ts";
import { RESOLVE_ROWS_MAX, resolveDue } from "../resolve/run.ts";
import type { UnhealthyJob } from "../scheduler/health.ts";
import type { JobCounts } from "../scheduler/job.ts";
import { drainRefetch } from "../sources/stripe/drain-refetch.ts";
import type { RunResult } from "../sources/stripe/run-scopes.ts";
import { sweepEvents } from "../sources/stripe/sweep-events.ts";
import { PROOF_LISTS, SLOW_LISTS, walkLists } from "../sources/stripe/walk-lists.ts";
import type { WalkedResource } from "../sources/stripe/walk-range.ts";
import { messageOf } from "../core/message.ts";
import { UnreadableError } from "../core/errors.ts";
import { monthlyReads } from "../store/read-counts.ts";
import { budgetFindings } from "./budget-findings.ts";
import { exclusively } from "./exclusively.ts";
import { JUDGE_LOCK, placeAll } from "./fast-path.ts";
import { jobFindings } from "./job-findings.ts";
import { judgeDeps } from "./judging.ts";
import { resolverDeps } from "./resolver-deps.ts";
import type { Tallyd } from "./tallyd.ts";

/** Something that could not be read: health is unknown. */
export interface StepFailure {
  readonly source: string;
  readonly scope: string;
  readonly code: string;
  readonly message: string;
}

/** What a step did. Trouble with the outside is told in `failures` and never thrown. */
export interface StepResult {
  readonly counts: JobCounts;
  readonly failures: readonly StepFailure[];
}

// A batch of look-ups by id; at Stripe's pace some seconds' worth.
const REFETCH_MAX = 100;
// One message a second is Slack's pace: half a minute's worth.
const DELIVER_MAX = 30;

const NOTHING: StepResult = { counts: {}, failures: [] };

/** Reads the team's table: what changed, or every row. */
export async function readLocal(tallyd: Tallyd, how: "changes" | "sweep"): Promise<StepResult> {
  try {
    const { changed, vanished, faulty } = await tallyd.local.read(how);
    return { counts: { changed, vanished: vanished.length, faulty }, failures: [] };
  } catch (error) {
    return { counts: {}, failures: [localFailure(error)] };
  }
}

/** Reads the events list up to now. */
export async function sweepStripeEvents(
  tallyd: Tallyd,
  signal: AbortSignal,
): Promise<StepResult & { readonly missed: number; readonly pages: number }> {
  const { stripe } = tallyd;
  if (stripe === null) return { ...NOTHING, missed: 0, pages: 0 };
  const swept = await sweepEvents({ ...tallyd, client: stripe }, { signal });
  const { fresh, missed, pages } = swept;
  const counts = { fresh, missed, holes: swept.holes.length };
  return { ...(await readingDone(tallyd, swept, counts)), missed, pages };
}

/** Walks object lists up to the safety lag. */
export async function walkStripeLists(
  tallyd: Tallyd,
  which: "proof" | "slow" | "all",
  signal: AbortSignal,
): Promise<StepResult> {
  const { stripe } = tallyd;
  if (stripe === null) return NOTHING;
  const resources: readonly WalkedResource[] = [
    ...(which === "slow" ? [] : PROOF_LISTS),
    ...(which === "proof" ? [] : SLOW_LISTS),
  ];
  const walked = await walkLists({ ...tallyd, client: stripe }, { resources, signal });
  return readingDone(tallyd, walked, { objects: walked.objects });
}

/** Reads by id what waits for it. */
export async function drainStripeRefetch(tallyd: Tallyd, signal: AbortSignal): Promise<StepResult> {
  const { stripe } = tallyd;
  if (stripe === null) return NOTHING;
  const drained = await drainRefetch({ ...tallyd, client: stripe }, { limit: REFETCH_MAX, signal });
  const { fetched, notYet, missing, postponed } = drained;
  return readingDone(tallyd, drained, { fetched, notYet, missing, postponed });
}

/** Looks at ambiguous rows; `all`: every one, whatever the ladder. */
export async function resolveRows(
  tallyd: Tallyd,
  all: boolean,
  signal: AbortSignal,
): Promise<StepResult> {
  try {
    const place = async (): Promise<void> => {
      const lock = { name: JUDGE_LOCK, wait: true, signal };
      await exclusively(tallyd.locks, lock, () => placeAll(tallyd, signal));
    };
    const local = await tallyd.local.reader();
    const deps = resolverDeps(tallyd, { local, place });
    const limit = all ? Number.MAX_SAFE_INTEGER : RESOLVE_ROWS_MAX;
    const { busy, failed, ...counts } = await resolveDue(deps, { all, limit, signal });
    const failures = failed.map((one) => ({ ...one, source: "resolve" }));
    await flushReads(tallyd);
    return { counts: { ...counts, busy: busy ? 1 : 0 }, failures };
  } catch (error) {
    tallyd.local.forget();
    return { counts: {}, failures: [localFailure(error)] };
  }
}

/**
 * Judges the sources themselves: blindness, configuration, ways out, and `jobs`, which says what
 * the jobs of a daemon neglect. All in one recording: what it does not find again is closed.
 */
export async function judgeAllSources(
  tallyd: Tallyd,
  options: {
    readonly signal: AbortSignal;
    readonly jobs?: () => Promise<readonly UnhealthyJob[]>;
  },
): Promise<StepResult> {
  await tallyd.local.checkRights();
  const deps = judgeDeps(tallyd);
  const record: JudgeDeps["record"] = async (input) => {
    const { now } = input;
    const hooks = hookFindings(await hookHealth(tallyd.pool, now), now);
    const jobs = jobFindings((await options.jobs?.()) ?? []);
    const reads = budgetFindings(await monthlyReads(tallyd.pool, { now }));
    const findings = [...input.findings, ...hooks, ...jobs, ...reads];
    return deps.record({ ...input, findings });
  };
  const lock = { name: JUDGE_LOCK, wait: true, signal: options.signal };
  const findings = await exclusively(tallyd.locks, lock, () => judgeSources({ ...deps, record }));
  return { counts: { findings: findings ?? 0 }, failures: [] };
}

/** Judges every operation anew, in chunks; other judging has its turn between two of them. */
export async function auditOperations(
  tallyd: Tallyd,
  options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
  },
): Promise<StepResult> {
  const { signal, onProgress } = options;
  const audited = await auditAll(judgeDeps(tallyd), {
    signal,
    ...(onProgress === undefined ? {} : { onProgress }),
    around: async (work) => {
      const lock = { name: JUDGE_LOCK, wait: true, signal };
      await exclusively(tallyd.locks, lock, work);
    },
  });
  signal.throwIfAborted();
  const { operations, findings, unreadable } = audited;
  return { counts: { operations, findings, unreadable }, failures: unreadableLooks(unreadable) };
}

/** Sends what is due. `early`: also what waits for company; the command ends after this call. */
export async function deliverAlerts(
  tallyd: Tallyd,
  options: {
    readonly early: boolean;
    readonly afterStart: boolean;
    readonly limit?: number;
    readonly signal: AbortSignal;
  },
): Promise<StepResult> {
  const { pool, now, log, hooks } = tallyd;
  const counts = await deliverDue(
    { pool, now, log, hooks },
    { ...options, limit: options.limit ?? DELIVER_MAX },
  );
  return { counts: { ...counts }, failures: await hookFailures(tallyd) };
}

/** Also of a way out that has nothing to send now: nobody would hear the next alert there. */
async function hookFailures(tallyd: Tallyd): Promise<StepFailure[]> {
  const hooks = await hookHealth(tallyd.pool, await tallyd.now());
  return hooks.flatMap(({ channel, state, error }) =>
    state === "dead" || state === "failing"
      ? [{ source: "alerts", scope: channel, code: state, message: error ?? "no answer" }]
      : [],
  );
}

/** Direct looks that failed keep absence verdicts unspoken. */
export function unreadableLooks(unreadable: number): StepFailure[] {
  if (unreadable === 0) return [];
  const message = `${String(unreadable)} absence verdicts wait: the direct look failed`;
  return [{ source: "look", scope: "all", code: "network", message }];
}

async function readingDone(tallyd: Tallyd, run: RunResult, counts: JobCounts): Promise<StepResult> {
  await flushReads(tallyd);
  return { counts: { ...counts, failed: run.failed.length }, failures: run.failed };
}

/** Counted reads are a figure for people: not writing them down must not fail what was read. */
async function flushReads(tallyd: Tallyd): Promise<void> {
  try {
    await tallyd.reads.flush();
  } catch (error) {
    tallyd.log.debug("counted reads could not be written and are kept", { error });
  }
}

/** A table that cannot be read is told; any other fault is thrown on. */
function localFailure(error: unknown): StepFailure {
  if (!(error instanceof UnreadableError)) throw error;
  return { source: "local", scope: "local", code: error.code, message: messageOf(error) };
}
