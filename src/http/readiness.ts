/** Is this replica able to do its work, and if not, why not? */
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import { messageOf } from "../core/message.ts";
import type { UnhealthyJob } from "../scheduler/health.ts";
import type { BlindSource } from "../store/blind-sources.ts";
import type { SightRow } from "../store/incident-list.ts";
import { isBlindness } from "../store/incident-list.ts";

/** One check. */
export interface Check {
  readonly name:
    "database" | "migrations" | "pipeline" | "sources" | "coverage" | "jobs" | "alerts";
  readonly ok: boolean;
  /** For people; says what is wrong when it is. */
  readonly reason: string;
}

export interface Readiness {
  readonly ready: boolean;
  readonly checks: readonly Check[];
}

export interface ReadinessDeps {
  readonly pool: Pool;
  readonly clock: Clock;
  /** Version of the schema, and the newest one that this tallyd knows. */
  readonly schema: () => Promise<{ readonly current: number; readonly known: number }>;
  /** Faults of the fast path on this replica; empty: it is fine. */
  readonly pipelineFaults: () => readonly string[];
  readonly blindSources: () => Promise<readonly BlindSource[]>;
  /** Open findings about tallyd's own sight. */
  readonly sight: () => Promise<readonly SightRow[]>;
  readonly unhealthyJobs: () => Promise<readonly UnhealthyJob[]>;
  /** Ways out that are gone or take nothing, in words. */
  readonly wayFaults: () => Promise<readonly string[]>;
}

// A probe that waits longer is cut off by whoever asks; a fast no is more use than a late one.
const CHECK_WAIT_MAX_MS = 3_000;

/** Runs every check; a check that throws or hangs is a failed one, so this never throws. */
export async function readiness(deps: ReadinessDeps): Promise<Readiness> {
  const checks = await Promise.all([
    check("database", async () => {
      await deps.pool.query("select 1");
      return { faults: [], fine: "reachable" };
    }),
    check("migrations", async () => {
      const { current, known } = await deps.schema();
      const faults =
        current === known ? [] : [`schema ${String(current)}, wanted ${String(known)}`];
      return { faults, fine: `schema ${String(current)}` };
    }),
    check("pipeline", () =>
      Promise.resolve({ faults: deps.pipelineFaults(), fine: "running on this replica" }),
    ),
    check("sources", async () => ({
      faults: (await deps.blindSources()).map(blindText),
      fine: "every source was read in time",
    })),
    check("coverage", async () => {
      const open = await deps.sight();
      const words = ({ id, summary }: SightRow): string => `${id}: ${summary}`;
      const others = open.filter((row) => !isBlindness(row)).map(words);
      const fine = others.length === 0 ? "" : `; settings: ${others.join("; ")}`;
      return { faults: open.filter(isBlindness).map(words), fine: `nothing is missing${fine}` };
    }),
    check("jobs", async () => ({
      faults: (await deps.unhealthyJobs()).map(jobText),
      fine: "every job finishes",
    })),
    check("alerts", async () => ({
      faults: await deps.wayFaults(),
      fine: "every way out takes alerts",
    })),
  ]);
  return { ready: checks.every(({ ok }) => ok), checks };
}

interface Verdict {
  readonly faults: readonly string[];
  readonly fine: string;
}

async function check(name: Check["name"], ask: () => Promise<Verdict>): Promise<Check> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${String(CHECK_WAIT_MAX_MS)} ms`));
    }, CHECK_WAIT_MAX_MS);
  });
  try {
    const { faults, fine } = await Promise.race([ask(), late]);
    const ok = faults.length === 0;
    return { name, ok, reason: ok ? fine : faults.join("; ") };
  } catch (error) {
    return { name, ok: false, reason: messageOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

function blindText(source: BlindSource): string {
  const since = source.lastOkAt === null ? "never" : `last at ${source.lastOkAt.toISOString()}`;
  const why = source.lastError === null ? "" : ` (${source.lastError})`;
  return `${source.source} ${source.scope}: read ${since}${why}`;
}

function jobText(job: UnhealthyJob): string {
  const since = job.lastOkAt === null ? "never" : `last at ${job.lastOkAt.toISOString()}`;
  const why = job.lastError === null ? "" : ` (${job.lastError})`;
  return `${job.job}: finished ${since}${why}`;
}
