// What every detector file has to hold, and what has to stand beside it.
import type { RepoFile } from "./read-files.ts";

const HEADERS = ["title", "severity", "needs", "advice"] as const;
// Time comes in as a parameter: the same run asked twice must give the same answer.
const CLOCK =
  /\b(now\s*\(|(clock|statement|transaction)_timestamp\b|current_(date|time\w*)\b|localtime)/;
const STAR = /select\s+(distinct\s+)?(\w+\.)?\*/;
const ORDERED = /order\s+by\s+subject(\s*,\s*[\w.]+)*\s*;?\s*$/;

/** Faults of one file of `sql/detectors`. */
export function detectorFaults(file: RepoFile): readonly string[] {
  const found: string[] = [];
  for (const header of HEADERS) {
    if (!new RegExp(`^--! ${header}: \\S`, "m").test(file.text)) {
      found.push(`${file.name} lacks the line "--! ${header}: ..."`);
    }
  }
  const code = codeOf(file.text);
  if (STAR.test(code)) found.push(`${file.name} selects *: name the columns`);
  if (!ORDERED.test(code)) found.push(`${file.name} does not end with "order by subject"`);
  return [...found, ...clockFaults(file)];
}

/** Views and detectors see the time only as a parameter. */
export function clockFaults(file: RepoFile): readonly string[] {
  const clock = CLOCK.exec(codeOf(file.text))?.[0];
  if (clock === undefined) return [];
  return [`${file.name} reads the clock (${clock}): take the time as :'as_of'`];
}

/** Detectors without a test of the same stem, and tests of detectors that are not there. */
export function parityFaults(
  detectors: readonly string[],
  tests: readonly string[],
): readonly string[] {
  const withTest = new Set(tests.map((name) => stemOf(name, ".test.ts")));
  const withSql = new Set(detectors.map((name) => stemOf(name, ".sql")));
  const untested = [...withSql].filter((stem) => !withTest.has(stem));
  // Only names in snake_case are a detector's; others test all of them together.
  const orphaned = [...withTest].filter((stem) => stem.includes("_") && !withSql.has(stem));
  return [
    ...untested.map((stem) => `sql/detectors/${stem}.sql needs test/detectors/${stem}.test.ts`),
    ...orphaned.map((stem) => `test/detectors/${stem}.test.ts tests no file of sql/detectors`),
  ];
}

/** Jobs that the timetable does not import. */
export function timetableFaults(jobs: readonly RepoFile[]): readonly string[] {
  const timetable = jobs.find((file) => file.name === "jobs/timetable.ts")?.text ?? "";
  return jobs
    .map((file) => file.name.replace("jobs/", ""))
    .filter((name) => name !== "timetable.ts" && !timetable.includes(`from "./${name}"`))
    .map((name) => `jobs/${name} is not in jobs/timetable.ts, so it never runs`);
}

/** The statement in lower case, without comments and without what stands in quotes. */
function codeOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/--.*$/gm, "")
    .replaceAll(/\/\*.*?\*\//gs, "")
    .replaceAll(/'[^']*'/g, "''")
    .trim();
}

function stemOf(name: string, ending: string): string {
  return (name.split("/").at(-1) ?? "").replace(ending, "");
}
