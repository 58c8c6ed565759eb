import type { Code, Severity } from "../core/finding.ts";
import type { Incident, IncidentStatus, Verdict } from "../core/incident.ts";
import { toBigint } from "./pool.ts";

/** A row of `tallyd.incident` as a pool of `openPool` gives it. */
export interface IncidentRow {
  readonly id: string;
  readonly code: Code;
  readonly subject: string;
  readonly operation_id: string | null;
  readonly severity: Severity;
  readonly status: IncidentStatus;
  readonly basis: string | null;
  readonly rail: string | null;
  readonly scope: string | null;
  readonly intents: readonly string[];
  readonly charges: readonly string[];
  readonly amount_at_risk: string | null;
  readonly currency: string | null;
  readonly occurred_at: Date | null;
  readonly first_seen: Date;
  readonly last_seen: Date;
  readonly count: number;
  readonly summary: string;
  readonly advice: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly muted_until: Date | null;
  readonly closed_at: Date | null;
  readonly closed_by: "facts" | "person" | null;
  readonly verdict: VerdictJson | null;
  readonly told: Severity | null;
}

/** A verdict in JSON: the amount is a string there. */
export type VerdictJson = Omit<Verdict, "amountAtRisk"> & { readonly amountAtRisk: string | null };

/** Columns of an incident, for `select`; the alias of the table is `i`. */
export const INCIDENT_COLUMNS = `
  i.id, i.code, i.subject, i.operation_id, i.severity, i.status, i.basis, i.rail, i.scope,
  i.intents, i.charges, i.amount_at_risk, i.currency, i.occurred_at, i.first_seen, i.last_seen,
  i.count, i.summary, i.advice, i.evidence, i.muted_until, i.closed_at, i.closed_by, i.verdict,
  i.told`;

/** An incident from its row. */
export function incidentFrom(row: IncidentRow): Incident {
  return {
    id: row.id,
    code: row.code,
    subject: row.subject,
    operationId: row.operation_id,
    severity: row.severity,
    status: row.status,
    basis: row.basis,
    rail: row.rail,
    scope: row.scope,
    intents: row.intents,
    charges: row.charges,
    amountAtRisk: optionalBigint(row.amount_at_risk),
    currency: row.currency,
    occurredAt: row.occurred_at,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    count: row.count,
    summary: row.summary,
    advice: row.advice,
    evidence: row.evidence,
    mutedUntil: row.muted_until,
    closedAt: row.closed_at,
    closedBy: row.closed_by,
    verdict: verdictFrom(row.verdict),
    told: row.told,
  };
}

/** The row of an incident, in a shape that JSON can carry to `jsonb_to_recordset`. */
export function incidentToJson(incident: Incident): Readonly<Record<string, unknown>> {
  return {
    id: incident.id,
    code: incident.code,
    subject: incident.subject,
    operation_id: incident.operationId,
    severity: incident.severity,
    status: incident.status,
    basis: incident.basis,
    rail: incident.rail,
    scope: incident.scope,
    intents: incident.intents,
    charges: incident.charges,
    amount_at_risk: incident.amountAtRisk === null ? null : String(incident.amountAtRisk),
    currency: incident.currency,
    occurred_at: incident.occurredAt,
    first_seen: incident.firstSeen,
    last_seen: incident.lastSeen,
    count: incident.count,
    summary: incident.summary,
    advice: incident.advice,
    evidence: incident.evidence,
    muted_until: incident.mutedUntil,
    closed_at: incident.closedAt,
    closed_by: incident.closedBy,
    verdict: verdictToJson(incident.verdict),
    told: incident.told,
  };
}

function optionalBigint(value: string | null): bigint | null {
  return value === null ? null : toBigint(value);
}

function verdictFrom(json: VerdictJson | null): Verdict | null {
  return json === null ? null : { ...json, amountAtRisk: optionalBigint(json.amountAtRisk) };
}

function verdictToJson(verdict: Verdict | null): VerdictJson | null {
  if (verdict === null) return null;
  const { amountAtRisk } = verdict;
  return { ...verdict, amountAtRisk: amountAtRisk === null ? null : String(amountAtRisk) };
}
