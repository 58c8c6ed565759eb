/** A report as text for a terminal: money first, then what needs people, then what it rests on. */
import { formatAmount } from "../core/money.ts";
import { visibleLine } from "../core/visible.ts";
import type {
  IncidentAge,
  Report,
  ReportCoverage,
  ReportIncidents,
  ReportMoney,
  ReportOpenIncidents,
  ReportResolutions,
  Sum,
} from "./report.ts";

// What fits beside the words on a line; the JSON has all of them.
const IDS_SHOWN_MAX = 5;

/** A part of a report: its lines, or one word when there are none. */
export interface ReportSection {
  readonly title: string;
  readonly lines: readonly string[];
}

/** Renders a report; no line end after the last line. */
export function reportText(report: Report): string {
  return [
    headLine(report),
    ...reportSections(report).flatMap(({ title, lines }) => [
      "",
      `${title}:`,
      ...lines.map((line) => `  ${line}`),
    ]),
    "",
    verdictLine(report),
  ]
    .map(visibleLine)
    .join("\n");
}

/** The parts of a report, money first; each has at least one line. */
export function reportSections(report: Report): readonly ReportSection[] {
  return [
    section("money", report.money.map(moneyLine), "none moved, none was meant to"),
    section("rows of the payments table", intentLines(report.intents), "none"),
    section("settled by tallyd", report.resolutions.map(resolutionLine), "nothing"),
    section("incidents", incidentLines(report.incidents), "none"),
    section("read", report.coverage.map(coverageLine), "nothing"),
    section("reads at Stripe", readLines(report.reads), "none"),
  ];
}

function headLine({ range }: Report): string {
  const from = wallTime(range.from, range.timeZone);
  return `report from ${from} to ${wallTime(range.to, range.timeZone)} (${range.timeZone})`;
}

/** `2026-05-04 00:00` in a zone: Sweden writes times as ISO 8601 does. */
function wallTime(iso: string, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", {
    timeZone,
    ...{ dateStyle: "short", timeStyle: "short" },
  }).format(new Date(iso));
}

function section(title: string, lines: readonly string[], otherwise: string): ReportSection {
  return { title, lines: lines.length === 0 ? [otherwise] : lines };
}

function moneyLine(money: ReportMoney): string {
  const { currency, network } = money;
  const words = (sum: Sum): string =>
    `${formatAmount(BigInt(sum.amount), currency)} in ${String(sum.count)}`;
  const some = (name: string, sum: Sum): string[] =>
    sum.count === 0 ? [] : [`${name} ${words(sum)}`];
  const parts = [
    `recorded ${words(money.recorded)}`,
    `charged ${words(money.charged)}`,
    ...some("of that without a row", money.withoutRow),
    ...some("refunded", money.refunded),
    ...some("lost to disputes", money.lost),
    `net ${formatAmount(BigInt(money.net), currency)}`,
  ];
  const where = network === null ? "" : ` on ${network}`;
  return `${currency.toUpperCase()}${where}: ${parts.join(", ")}`;
}

function intentLines({ made, unsettled }: Report["intents"]): string[] {
  const words = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([state, count]) => `${String(count)} ${state}`)
      .join(", ");
  return [
    ...(Object.keys(made).length === 0 ? [] : [`made in the range: ${words(made)}`]),
    ...(Object.keys(unsettled).length === 0 ? [] : [`not final now: ${words(unsettled)}`]),
  ];
}

function resolutionLine(one: ReportResolutions): string {
  const { decision, outcome, count, intents, more } = one;
  return `${String(count)} ${decision} (${outcome}): ${idsText(intents, more)}`;
}

function idsText(ids: readonly string[], more: number): string {
  const left = more + Math.max(0, ids.length - IDS_SHOWN_MAX);
  const shown = ids.slice(0, IDS_SHOWN_MAX).join(", ");
  return left === 0 ? shown : `${shown} and ${String(left)} more`;
}

const AGE_WORDS: Readonly<Record<IncidentAge, string>> = {
  hour: "younger than an hour",
  day: "younger than a day",
  week: "younger than a week",
  older: "a week or older",
};

function incidentLines({ opened, reopened, closed, openNow }: Report["incidents"]): string[] {
  const line = (what: string, one: ReportIncidents): string =>
    `${String(one.count)} ${one.severity} ${what}: ${idsText(one.ids, one.count - one.ids.length)}`;
  const now = (one: ReportOpenIncidents): string =>
    line(`${one.status} now, ${AGE_WORDS[one.age]}`, one);
  return [
    ...opened.map((one) => line("opened", one)),
    ...reopened.map((one) => line("came back", one)),
    ...closed.map((one) => line("closed", one)),
    ...openNow.map(now),
  ];
}

function coverageLine(one: ReportCoverage): string {
  const { source, scope, state, missing, provenTo, failingSince, errorCode } = one;
  const [gap, ...others] = missing;
  const more = others.length === 0 ? "" : ` and ${String(others.length)} more`;
  const hole = gap === undefined ? "" : `, missing ${minute(gap.from)} to ${minute(gap.to)}${more}`;
  const end = provenTo === null ? "nothing is proven" : `proven to ${minute(provenTo)}`;
  const words = missing.length === 0 ? "complete" : `${end}${hole}`;
  const late = state === "catching_up" ? " (in time)" : "";
  const fails =
    failingSince === null ? "" : `; failing since ${minute(failingSince)} (${errorCode ?? "?"})`;
  return `${source} of ${scope}: ${words}${late}${fails}`;
}

function minute(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")} UTC`;
}

function readLines({ range, month }: Report["reads"]): string[] {
  const scopes = [...new Set(range.map((row) => row.scope))];
  const used = scopes.map((scope) => {
    const rows = range.filter((row) => row.scope === scope);
    const parts = rows.map((row) => `${row.endpoint} ${String(row.reads)}`).join(", ");
    return `${scope}: ${String(rows.reduce((sum, row) => sum + row.reads, 0))} (${parts})`;
  });
  const allowed = month.map(
    ({ scope, used: reads, allowed: most }) =>
      `${scope}, 30 days: ${String(reads)} of at least ${String(most)}`,
  );
  return [...used, ...allowed];
}

/** Was everything read, and what is open? */
export function verdictLine({ complete, coverage, open }: Report): string {
  const newest = coverage.some((one) => one.expected && one.state === "catching_up");
  const seen = !complete
    ? "NOT everything was read: the figures may be too low, see what is missing above"
    : newest
      ? "everything was read but the newest end"
      : "everything was read";
  if (open === 0) return `${seen}; nothing is open`;
  return `${seen}; ${open === 1 ? "1 incident is open" : `${String(open)} incidents are open`}`;
}
