/** The laboratory's report for people. */
import type { LabReport, Result } from "./lab.ts";
import type { DesignName } from "./schedule.ts";

const DESIGNS: Readonly<Record<DesignName, string>> = {
  cache: "cache of completed answers (model)",
  ledger_model: "retained operation ledger (model)",
  ledger: "tallyd/ledger on PostgreSQL, worker processes, Stripe stand-in",
};

/** Head and rows of the table. */
export function labTable(report: LabReport): {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
} {
  const head = ["schedule", "design", "effects", "duplicates", "replayed", "blocked", "conflicts"];
  return {
    head: [...head, "suppressed", "recorded later"],
    rows: report.configuration.schedules.flatMap(({ name }) =>
      report.results.filter(({ schedule }) => schedule === name).map(rowOf),
    ),
  };
}

function rowOf({ schedule, design, counts, settled }: Result, index: number): string[] {
  const { effects, duplicates, replayed, blocked, conflicts, suppressed } = counts;
  const numbers = [effects, duplicates, replayed, blocked, conflicts, suppressed].map(String);
  return [
    index === 0 ? schedule : "",
    design,
    ...numbers,
    settled === null ? "-" : String(settled),
  ];
}

/** What stands around the table. */
export function labNotes(report: LabReport): string {
  const { configuration, source, counterexamples } = report;
  const { designs, postgres, node } = configuration;
  const found = counterexamples.map(
    ({ schedule, design, kind, what, expected, seen }) =>
      `  ${schedule}, ${design}: ${what} is ${String(seen)}, ${String(expected)} by ${kind}`,
  );
  return [
    ...designs.map((name) => `${name}: ${DESIGNS[name]}`),
    `code: sha256 ${source.sha256} of ${String(source.files.length)} files; Node.js ${node}` +
      (postgres === null ? "" : `; PostgreSQL ${postgres}`),
    found.length === 0 ? "No counterexample." : `Counterexamples:\n${found.join("\n")}`,
  ].join("\n");
}
