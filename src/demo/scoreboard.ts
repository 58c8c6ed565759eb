/** Injected against found: pure comparison, and the closing table. */
import type { IncidentJson } from "../incident/present.ts";
import type { Expected } from "./scenario.ts";

/** Counts of one finding code. */
export interface ScoreRow {
  readonly code: string;
  readonly injected: number;
  readonly found: number;
  readonly missed: readonly string[];
  readonly invented: readonly string[];
}

/** What makes an incident the expected one: its code and the rows or charges it names. */
function nameOf(code: string, intents: readonly string[], charges: readonly string[]): string {
  const names = intents.length > 0 ? intents : charges;
  return `${code} ${[...names].sort().join(" ")}`;
}

function expectedName(expected: Expected): string {
  return nameOf(expected.code, expected.intents, expected.charges ?? []);
}

/** Has the incident reached the end that was expected of it? */
function endsAsExpected(expected: Expected, incident: IncidentJson): boolean {
  return (incident.status === "closed") === (expected.end === "closed");
}

/** Which expected incidents are there, in their expected end. */
export function isFound(expected: Expected, incidents: readonly IncidentJson[]): boolean {
  return incidents.some(
    (incident) =>
      nameOf(incident.code, incident.intents, incident.charges) === expectedName(expected) &&
      endsAsExpected(expected, incident),
  );
}

/** Compares everything that was injected with everything that was found, by code. */
export function score(
  expected: readonly Expected[],
  incidents: readonly IncidentJson[],
): readonly ScoreRow[] {
  const wanted = new Map(expected.map((one) => [expectedName(one), one]));
  const names = incidents.map((one) => nameOf(one.code, one.intents, one.charges));
  const codes = [...new Set([...expected, ...incidents].map((one) => one.code))].sort();
  return codes.map((code) => {
    const ofCode = [...wanted.values()].filter((one) => one.code === code);
    const missed = ofCode.filter((one) => !isFound(one, incidents));
    const invented = incidents
      .filter((one, n) => one.code === code && !wanted.has(names[n] ?? ""))
      .map((one) => `${one.id} ${one.summary}`);
    return {
      code,
      injected: ofCode.length,
      found: ofCode.length - missed.length,
      missed: missed.map(expectedName),
      invented,
    };
  });
}

/** The table as text, aligned for a terminal. */
export function renderScore(rows: readonly ScoreRow[]): string {
  const cells = [
    ["finding", "injected", "found", "missed", "invented"],
    ...rows.map((row) => [
      row.code,
      String(row.injected),
      String(row.found),
      String(row.missed.length),
      String(row.invented.length),
    ]),
  ];
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  return cells
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("   "),
    )
    .map((line) => `  ${line}`)
    .join("\n");
}
