/** The laboratory: schedules against designs, counted, judged, and tied to the code that ran. */
import { SCHEDULES } from "./built-in.ts";
import { countTrace } from "./design.ts";
import type { Trace } from "./design.ts";
import { runCache, runLedgerModel } from "./models.ts";
import { runLedger } from "./real-ledger.ts";
import type { RealDeps } from "./real-ledger.ts";
import type { Counts, DesignName, Schedule } from "./schedule.ts";
import { sourceHash } from "./source-hash.ts";
import type { SourceHash } from "./source-hash.ts";

/** One schedule under one design. */
export interface Result {
  readonly schedule: string;
  readonly design: DesignName;
  readonly counts: Counts;
  readonly settled: number | null;
  readonly answers: Trace["answers"];
}

/**
 * Where a design did not keep what is said of it: `claim`: a ledger admits one effect for each
 * operation and refuses no operation for good; `expectation`: the schedule says otherwise.
 */
export interface Counterexample {
  readonly schedule: string;
  readonly design: DesignName;
  readonly kind: "claim" | "expectation";
  readonly what: keyof Counts;
  readonly expected: number;
  readonly seen: number;
}

/** What a run of the laboratory says. */
export interface LabReport {
  readonly version: string;
  readonly configuration: {
    readonly designs: readonly DesignName[];
    readonly schedules: readonly Schedule[];
    readonly node: string;
    /** `null`: the real ledger was left out. */
    readonly postgres: string | null;
  };
  readonly source: SourceHash;
  readonly results: readonly Result[];
  readonly counterexamples: readonly Counterexample[];
}

/** Runs the built-in schedules and those of a file. `real` `null`: the models alone. */
export async function runLab(input: {
  readonly version: string;
  readonly more: readonly Schedule[];
  readonly real: RealDeps | null;
  readonly onProgress: (line: string) => void;
}): Promise<LabReport> {
  const { real, version } = input;
  // A schedule of the file with a name of ours stands in its place.
  const named = new Set(input.more.map(({ name }) => name));
  const schedules = [...SCHEDULES.filter(({ name }) => !named.has(name)), ...input.more];
  const results = schedules.flatMap((schedule) => [
    resultOf(schedule, "cache", runCache(schedule)),
    resultOf(schedule, "ledger_model", runLedgerModel(schedule)),
  ]);
  if (real !== null) {
    const traces = await runLedger(real, schedules, ({ name }) => {
      input.onProgress(`${name} is done on the real ledger`);
    });
    traces.forEach((trace, index) => {
      const schedule = schedules[index];
      if (schedule !== undefined) results.push(resultOf(schedule, "ledger", trace));
    });
  }
  const designs: DesignName[] = [
    "cache",
    "ledger_model",
    ...(real === null ? [] : (["ledger"] as const)),
  ];
  return {
    version,
    configuration: {
      ...{ designs, schedules, node: process.version },
      postgres: real === null ? null : await postgresVersion(real),
    },
    source: await sourceHash(),
    results,
    counterexamples: results.flatMap((one) => judge(one, schedules)),
  };
}

function resultOf(schedule: Schedule, design: DesignName, trace: Trace): Result {
  return {
    ...{ schedule: schedule.name, design, counts: countTrace(schedule, trace) },
    ...{ settled: trace.settled, answers: trace.answers },
  };
}

async function postgresVersion({ pool }: RealDeps): Promise<string> {
  const found = await pool.query<{ version: string }>(
    "select current_setting('server_version') as version",
  );
  return found.rows[0]?.version ?? "unknown";
}

const CLAIMED = ["duplicates", "suppressed"] as const;

function judge(result: Result, schedules: readonly Schedule[]): Counterexample[] {
  const { schedule, design, counts } = result;
  const expected = schedules.find(({ name }) => name === schedule)?.expect[design] ?? {};
  const found: Counterexample[] = [];
  if (design !== "cache") {
    for (const what of CLAIMED) {
      if (counts[what] === 0) continue;
      found.push({ schedule, design, kind: "claim", what, expected: 0, seen: counts[what] });
    }
  }
  for (const [name, value] of Object.entries(expected)) {
    const what = name as keyof Counts;
    const seen = counts[what];
    if (value === undefined || value === seen) continue;
    if (found.some((one) => one.what === what)) continue;
    found.push({ schedule, design, kind: "expectation", what, expected: value, seen });
  }
  return found;
}
