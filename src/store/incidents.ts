/** The one writer of `tallyd.incident` and `tallyd.incident_entry`. */
import type { PoolClient } from "pg";

import type { Code } from "../core/finding.ts";
import type { Incident } from "../core/incident.ts";
import type { IncidentRow } from "./incident-row.ts";
import { INCIDENT_COLUMNS, incidentFrom, incidentToJson } from "./incident-row.ts";
import type { Db } from "./pool.ts";

/** What a run is about, to find the incidents that it may change. */
export interface IncidentSelection {
  /** Ids of the incidents of the findings. */
  readonly ids: readonly string[];
  readonly operations: readonly string[] | "all";
  readonly subjects: readonly string[] | "all";
}

/** A line of an incident's history. */
export interface IncidentEntry {
  readonly incidentId: string;
  readonly step:
    | "opened"
    | "worsened"
    | "eased"
    | "acknowledged"
    | "muted"
    | "unmuted"
    | "closed"
    | "reopened"
    | "corrected"
    | "reminded";
  readonly actor: string;
  readonly note: string | null;
  readonly evidence: Readonly<Record<string, unknown>>;
}

// A statement of a thousand incidents with their evidence stays in the low megabytes.
const SAVED_AT_ONCE_MAX = 1_000;

/**
 * Lets one run at a time change incidents, until the transaction ends: of two that open the same
 * incident at once, the second must see the first's.
 */
export async function lockIncidents(tx: PoolClient): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('tallyd:incidents', 0))");
}

/** Loads and locks the incidents that a run may change. */
export async function loadIncidents(
  tx: PoolClient,
  selection: IncidentSelection,
): Promise<readonly Incident[]> {
  const { operations, subjects } = selection;
  const found = await tx.query<IncidentRow>(
    `select ${INCIDENT_COLUMNS}
       from tallyd.incident i
      where i.id in (
              select unnest($1::text[])
              union
              select o.id
                from tallyd.incident o
               where o.status <> 'closed'
                 and o.operation_id is not null
                 and ($2 or o.operation_id = any ($3::text[]))
              union
              select s.id
                from tallyd.incident s
               where s.status <> 'closed'
                 and s.operation_id is null
                 and ($4 or s.subject = any ($5::text[])))
      order by i.id
        for update`,
    [
      selection.ids,
      operations === "all",
      operations === "all" ? [] : operations,
      subjects === "all",
      subjects === "all" ? [] : subjects,
    ],
  );
  return found.rows.map(incidentFrom);
}

/**
 * Loads and locks the incidents that name one of these charges: a trouble may go on under another
 * subject. One that facts closed is over and left out.
 */
export async function loadByCharges(
  tx: PoolClient,
  about: { readonly charges: readonly string[]; readonly codes: readonly Code[] },
): Promise<readonly Incident[]> {
  const found = await tx.query<IncidentRow>(
    `select ${INCIDENT_COLUMNS}
       from tallyd.incident i
      where i.id in (
              select c.id
                from unnest($1::text[]) as n (charge)
                -- One index probe per charge, whatever the planner takes the size of the table for:
                -- by code, or as an overlap of two long lists, all is compared with all.
               cross join lateral (
                       select a.id, a.code, a.status, a.closed_by
                         from tallyd.incident a
                        where a.charges @> array[n.charge]
                       offset 0
                     ) c
               where c.code = any ($2::text[])
                 and (c.status <> 'closed' or c.closed_by = 'person'))
      order by i.id
        for update`,
    [about.charges, about.codes],
  );
  return found.rows.map(incidentFrom);
}

/**
 * Loads and locks incidents that are quiet and should not stay so: muted until a time that has
 * come, and open though the last word told was that they are over.
 */
export async function loadQuiet(
  tx: PoolClient,
  about: { readonly now: Date; readonly limit: number },
): Promise<readonly Incident[]> {
  const found = await tx.query<IncidentRow>(
    `select ${INCIDENT_COLUMNS}
       from tallyd.incident i
      where i.status <> 'closed'
        and (i.status = 'muted' and i.muted_until <= $1
             or i.status = 'open' and i.told is null and i.severity <> 'info')
      order by i.status, i.id
      limit $2
        for update`,
    [about.now, about.limit],
  );
  return found.rows.map(incidentFrom);
}

/** Which of these incidents exist and are not closed. */
export async function openIncidentIds(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = await db.query<{ id: string }>(
    `select i.id
       from tallyd.incident i
      where i.id = any ($1::text[])
        and i.status <> 'closed'`,
    [ids],
  );
  return new Set(found.rows.map((row) => row.id));
}

/** Loads and locks one incident; `null`: there is none of that id. */
export async function lockIncident(tx: PoolClient, id: string): Promise<Incident | null> {
  const found = await tx.query<IncidentRow>(
    `select ${INCIDENT_COLUMNS}
       from tallyd.incident i
      where i.id = $1
        for update`,
    [id],
  );
  return found.rows[0] === undefined ? null : incidentFrom(found.rows[0]);
}

/** Failed or cancelled refunds of the incidents' charges; an incident without any is left out. */
export async function failedRefundsOf(
  tx: PoolClient,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await tx.query<{ id: string; refunds: string[] }>(
    `select i.id, array_agg(r.refund_id order by r.refund_id) as refunds
       from tallyd.incident i
       join tallyd.refund r
         on r.charge_id = any (i.charges)
        and (i.scope is null or r.scope = i.scope)
        and r.status in ('failed', 'canceled')
      where i.id = any ($1::text[])
      group by i.id`,
    [ids],
  );
  return new Map(found.rows.map((row) => [row.id, row.refunds]));
}

/** Inserts or replaces incidents, as many as there are. */
export async function saveIncidents(tx: PoolClient, incidents: readonly Incident[]): Promise<void> {
  for (let from = 0; from < incidents.length; from += SAVED_AT_ONCE_MAX) {
    const part = incidents.slice(from, from + SAVED_AT_ONCE_MAX);
    await tx.query(SAVE, [JSON.stringify(part.map(incidentToJson))]);
  }
}

const SAVE = `
insert into tallyd.incident as i
       (id, code, subject, operation_id, severity, status, basis, rail, scope, intents, charges,
        amount_at_risk, currency, occurred_at, first_seen, last_seen, count, summary, advice,
        evidence, muted_until, closed_at, closed_by, verdict, told)
select n.id, n.code, n.subject, n.operation_id, n.severity, n.status, n.basis, n.rail, n.scope,
       n.intents, n.charges, n.amount_at_risk, n.currency, n.occurred_at, n.first_seen,
       n.last_seen, n.count, n.summary, n.advice, n.evidence, n.muted_until, n.closed_at,
       n.closed_by, nullif(n.verdict, 'null'::jsonb), n.told
  from jsonb_to_recordset($1::jsonb) as n
       (id text, code text, subject text, operation_id text, severity text, status text,
        basis text, rail text, scope text, intents text[], charges text[],
        amount_at_risk numeric, currency text, occurred_at timestamptz, first_seen timestamptz,
        last_seen timestamptz, count integer, summary text, advice text, evidence jsonb,
        muted_until timestamptz, closed_at timestamptz, closed_by text, verdict jsonb, told text)
    on conflict (id) do update
   set operation_id = excluded.operation_id,
       severity = excluded.severity,
       status = excluded.status,
       basis = excluded.basis,
       rail = excluded.rail,
       scope = excluded.scope,
       intents = excluded.intents,
       charges = excluded.charges,
       amount_at_risk = excluded.amount_at_risk,
       currency = excluded.currency,
       occurred_at = excluded.occurred_at,
       last_seen = excluded.last_seen,
       count = excluded.count,
       summary = excluded.summary,
       advice = excluded.advice,
       evidence = excluded.evidence,
       muted_until = excluded.muted_until,
       closed_at = excluded.closed_at,
       closed_by = excluded.closed_by,
       verdict = excluded.verdict,
       told = excluded.told`;

/** Adds lines to the histories of incidents, all of one moment. */
export async function addEntries(
  tx: PoolClient,
  entries: readonly IncidentEntry[],
  at: Date,
): Promise<void> {
  for (let from = 0; from < entries.length; from += SAVED_AT_ONCE_MAX) {
    const part = entries.slice(from, from + SAVED_AT_ONCE_MAX);
    await tx.query(
      `insert into tallyd.incident_entry (incident_id, at, actor, step, note, evidence)
       select n."incidentId", $2, n.actor, n.step, n.note, n.evidence
         from jsonb_to_recordset($1::jsonb) as n
              ("incidentId" text, actor text, step text, note text, evidence jsonb)`,
      [JSON.stringify(part), at],
    );
  }
}
