/** Gathers the facts of a report in one snapshot; nothing is judged and no source is asked. */
import type { Pool } from "pg";

import { addMs } from "../core/clock.ts";
import { watchedScopes } from "../core/scope.ts";
import type { ExpectedSource } from "../store/blind-sources.ts";
import { countAlarming } from "../store/incident-list.ts";
import { readNamedSql, runNamed } from "../store/named-sql.ts";
import type { Db } from "../store/pool.ts";
import { monthlyReads } from "../store/read-counts.ts";
import type { SourceKey } from "../store/sources.ts";
import { listSources } from "../store/sources.ts";
import { withTx } from "../store/tx.ts";
import type { ReportRange } from "./range.ts";
import type {
  CoverageState,
  Report,
  ReportCoverage,
  ReportIncidents,
  ReportMoney,
  ReportOpenIncidents,
  ReportResolutions,
  Sum,
} from "./report.ts";

const sql = {
  money: readNamedSql("report/money.sql"),
  intents: readNamedSql("report/intents.sql"),
  resolutions: readNamedSql("report/resolutions.sql"),
  incidents: readNamedSql("report/incidents.sql"),
  openIncidents: readNamedSql("report/open_incidents.sql"),
  coverage: readNamedSql("report/coverage.sql"),
  reads: readNamedSql("report/reads.sql"),
};

/** What is reported on, and by whom it is watched. */
export interface ReportInput {
  readonly range: ReportRange;
  readonly now: Date;
  readonly settings: Parameters<typeof watchedScopes>[0];
  /** Sources whose reading the health of the range rests on. */
  readonly expected: readonly ExpectedSource[];
}

// A year of a large account is read once and summed; a minute is enough, more is a missing index.
const STATEMENT_MAX_MS = 60_000;
// Enough for a digest and a terminal; the rest is in tallyd.resolution_list.
const RESOLUTION_IDS_MAX = 50;
// A range with more holes than this is not read, whatever their exact places.
const GAPS_MAX = 20;

/** States in which a row still waits for something. */
const UNSETTLED = new Set(["key_minted", "in_flight", "reconciling", "failed_retryable"]);

/** The facts of the range, and what is so now. */
export async function gatherReport(pool: Pool, input: ReportInput): Promise<Report> {
  return withTx(pool, (tx) => gatherIn(tx, input), {
    readOnly: true,
    isolation: "repeatable read",
    statementTimeoutMs: STATEMENT_MAX_MS,
  });
}

async function gatherIn(db: Db, input: ReportInput): Promise<Report> {
  const { range, now } = input;
  const scopes = await scopesOf(db, input);
  const bounds = { from: range.from, to: range.to };
  const coverage = await readCoverage(db, input);
  const month = await monthlyReads(db, { now });
  return {
    range: {
      from: range.from.toISOString(),
      to: range.to.toISOString(),
      timeZone: range.timeZone,
    },
    at: now.toISOString(),
    complete: coverage.every((one) => !one.expected || isWell(one.state)),
    open: await countAlarming(db, now),
    money: (await runNamed<MoneyRow>(db, sql.money, { ...bounds, scopes })).map(moneyOf),
    intents: await readIntents(db, bounds),
    resolutions: await readResolutions(db, bounds),
    incidents: await readIncidents(db, { ...bounds, as_of: now }),
    coverage,
    reads: {
      range: (await runNamed<ReadsRow>(db, sql.reads, bounds)).map((row) => ({
        ...row,
        reads: Number(row.reads),
      })),
      month: month.map(({ scope, used, allowed }) => ({
        scope,
        used: Number(used),
        allowed: Number(allowed),
      })),
    },
  };
}

interface Bounds {
  readonly [name: string]: unknown;
  readonly from: Date;
  readonly to: Date;
}

/** Also scopes that are no longer watched: their money of the range was real. */
async function scopesOf(db: Db, { settings }: ReportInput): Promise<string[]> {
  const known = (await listSources(db)).map((source) => source.scope);
  return [...new Set([...watchedScopes(settings), ...known])];
}

interface MoneyRow {
  readonly rail: ReportMoney["rail"];
  readonly network: string | null;
  readonly currency: string;
  readonly recorded_count: number;
  readonly recorded: string;
  readonly charged_count: number;
  readonly charged: string;
  readonly without_row_count: number;
  readonly without_row: string;
  readonly refunded_count: number;
  readonly refunded: string;
  readonly lost_count: number;
  readonly lost: string;
  readonly net: string;
}

function moneyOf(row: MoneyRow): ReportMoney {
  const sum = (count: number, amount: string): Sum => ({ count, amount });
  return {
    ...{ rail: row.rail, network: row.network, currency: row.currency },
    recorded: sum(row.recorded_count, row.recorded),
    charged: sum(row.charged_count, row.charged),
    withoutRow: sum(row.without_row_count, row.without_row),
    refunded: sum(row.refunded_count, row.refunded),
    lost: sum(row.lost_count, row.lost),
    net: row.net,
  };
}

async function readIntents(db: Db, bounds: Bounds): Promise<Report["intents"]> {
  const rows = await runNamed<{ state: string; made: number; standing: number }>(
    db,
    sql.intents,
    bounds,
  );
  const counts = (of: (row: (typeof rows)[number]) => number): Record<string, number> =>
    Object.fromEntries(
      rows.flatMap((row): [string, number][] => (of(row) === 0 ? [] : [[row.state, of(row)]])),
    );
  return {
    made: counts((row) => row.made),
    unsettled: counts((row) => (UNSETTLED.has(row.state) ? row.standing : 0)),
  };
}

async function readResolutions(db: Db, bounds: Bounds): Promise<ReportResolutions[]> {
  const rows = await runNamed<{
    decision: string;
    outcome: string;
    number: number;
    rows: number;
    intents: string[];
  }>(db, sql.resolutions, { ...bounds, limit: RESOLUTION_IDS_MAX });
  return rows.map(({ decision, outcome, number, rows: all, intents }) => ({
    ...{ decision, outcome, count: number, intents, more: all - intents.length },
  }));
}

interface IncidentsRow {
  readonly severity: ReportIncidents["severity"];
  readonly number: number;
  readonly ids: readonly string[];
}

async function readIncidents(
  db: Db,
  bounds: Bounds & { readonly as_of: Date },
): Promise<Report["incidents"]> {
  const happened = await runNamed<IncidentsRow & { readonly what: string }>(
    db,
    sql.incidents,
    bounds,
  );
  const of = (what: string): ReportIncidents[] =>
    happened.filter((row) => row.what === what).map(incidentsOf);
  const open = await runNamed<IncidentsRow & Pick<ReportOpenIncidents, "status" | "age">>(
    db,
    sql.openIncidents,
    bounds,
  );
  return {
    opened: of("opened"),
    reopened: of("reopened"),
    closed: of("closed"),
    openNow: open.map((row) => ({ ...incidentsOf(row), status: row.status, age: row.age })),
  };
}

function incidentsOf({ severity, number, ids }: IncidentsRow): ReportIncidents {
  return { severity, count: number, ids };
}

interface CoverageRow extends SourceKey {
  readonly proven_to: Date | null;
  readonly missing_from: readonly Date[];
  readonly missing_to: readonly Date[];
  readonly failing_since: Date | null;
  readonly last_error_code: string | null;
}

/** Every expected source, read or not, and whatever else proves something or fails. */
async function readCoverage(db: Db, input: ReportInput): Promise<readonly ReportCoverage[]> {
  const { range, expected } = input;
  const { from, to } = range;
  const rows = await runNamed<CoverageRow>(db, sql.coverage, { from, to, limit: GAPS_MAX });
  const never = expected.filter((key) => !rows.some((row) => same(row, key)));
  return [
    ...rows
      .map((row) => coverageOf(row, input))
      .filter((one) => one.expected || one.provenTo !== null || one.failingSince !== null),
    ...never.map(({ source, scope }) => neverRead({ source, scope }, range)),
  ];
}

function same(one: SourceKey, other: SourceKey): boolean {
  return one.source === other.source && one.scope === other.scope;
}

function coverageOf(row: CoverageRow, { expected, now }: ReportInput): ReportCoverage {
  const known = expected.find((one) => same(one, row));
  return {
    ...{ source: row.source, scope: row.scope, expected: known !== undefined },
    state: stateOf(row, addMs(now, -(known?.silentMaxMs ?? 0))),
    provenTo: row.proven_to?.toISOString() ?? null,
    missing: row.missing_from.flatMap((from, index) => {
      const to = row.missing_to[index];
      return to === undefined ? [] : [{ from: from.toISOString(), to: to.toISOString() }];
    }),
    failingSince: row.failing_since?.toISOString() ?? null,
    errorCode: row.last_error_code,
  };
}

/** What was made after `inTime` may still be unread: the source has its beat. */
function stateOf(row: CoverageRow, inTime: Date): CoverageState {
  const [oldest] = row.missing_from;
  if (oldest === undefined) return "complete";
  if (row.failing_since !== null) return "failing";
  return oldest >= inTime ? "catching_up" : "incomplete";
}

function neverRead(key: SourceKey, { from, to }: ReportRange): ReportCoverage {
  const missing = [{ from: from.toISOString(), to: to.toISOString() }];
  const nothing = { provenTo: null, failingSince: null, errorCode: null };
  return { ...key, expected: true, state: "incomplete", ...nothing, missing };
}

function isWell(state: CoverageState): boolean {
  return state === "complete" || state === "catching_up";
}

interface ReadsRow {
  readonly scope: string;
  readonly endpoint: string;
  readonly reads: string;
}
