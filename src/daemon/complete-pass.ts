/** Has the daemon made a complete pass, and is it well? What the heartbeat goes by. */
import type { Pool } from "pg";

import type { Readiness } from "../http/readiness.ts";
import type { ExpectedSource } from "../store/blind-sources.ts";
import { readJobRecords } from "../store/job-runs.ts";
import { listSources } from "../store/sources.ts";
import type { LoopState } from "./wake-loop.ts";

export interface PassDeps {
  readonly pool: Pool;
  /** When this process started: what was done before says nothing about it. */
  readonly startedAt: Date;
  readonly readiness: () => Promise<Readiness>;
  readonly jobs: readonly {
    readonly name: string;
    readonly schedule: { readonly everyMs: number };
  }[];
  readonly expected: readonly ExpectedSource[];
  readonly loops: () => ReadonlyMap<string, Readonly<LoopState>>;
}

// A pass is made of the jobs that run at least this often. The slow ones (lists, audit) are not due
// again for hours after a restart; that they ran in time is a matter of readiness.
export const QUICK_JOB_MAX_MS = 60_000;

/**
 * Why there is no complete healthy pass now, for people; empty: there is one. Health is what
 * readiness says; beside that, everything must have been done since the start, and the newest
 * reading and the newest run of each must have gone well.
 */
export async function passFaults(deps: PassDeps): Promise<readonly string[]> {
  const { checks } = await deps.readiness();
  const unready = checks.flatMap(({ name, ok, reason }) => (ok ? [] : [`${name}: ${reason}`]));
  const loops = [...deps.loops()].flatMap(([name, { lastOkAt, failuresInRow }]) =>
    lastOkAt === null || failuresInRow > 0 ? [`${name} has not run well since the start`] : [],
  );
  return [...unready, ...loops, ...(await jobFaults(deps)), ...(await sourceFaults(deps))];
}

async function jobFaults({ pool, jobs, startedAt }: PassDeps): Promise<readonly string[]> {
  const names = jobs.map((job) => job.name);
  const records = new Map((await readJobRecords(pool, names)).map((one) => [one.job, one]));
  return jobs.flatMap(({ name, schedule }) => {
    const { lastOkAt = null, lastError = null } = records.get(name) ?? {};
    if (lastError !== null) return [`${name} failed: ${lastError}`];
    if (schedule.everyMs > QUICK_JOB_MAX_MS) return [];
    const isDone = lastOkAt !== null && lastOkAt >= startedAt;
    return isDone ? [] : [`${name} has not finished since the start`];
  });
}

async function sourceFaults({ pool, expected }: PassDeps): Promise<readonly string[]> {
  const rows = await listSources(pool);
  return expected.flatMap(({ source, scope }) => {
    const row = rows.find((known) => known.source === source && known.scope === scope);
    if ((row?.lastOkAt ?? null) === null) return [`${source} ${scope} was never read`];
    const failing = (row?.failingSince ?? null) !== null;
    return failing ? [`${source} ${scope} fails: ${row?.lastError ?? "no reason"}`] : [];
  });
}
