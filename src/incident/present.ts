/** Incidents as `incidents list|show` gives them: README.md, outside contract. */
import type { Incident, IncidentStatus } from "../core/incident.ts";
import { statusAt } from "../core/incident.ts";
import type { EntryRow, IncidentFilter } from "../store/incident-list.ts";
import { eachIncident, readEntries, readIncident } from "../store/incident-list.ts";
import type { Db } from "../store/pool.ts";

/** Amounts are strings of minor units, times ISO 8601 in UTC; `null`: unknown or not named. */
export interface IncidentJson {
  readonly id: string;
  readonly code: string;
  readonly severity: string;
  /** As of now: a mute that has run out is `open`. */
  readonly status: IncidentStatus;
  readonly basis: string | null;
  readonly rail: string | null;
  readonly scope: string | null;
  readonly operation: string | null;
  readonly intents: readonly string[];
  readonly charges: readonly string[];
  readonly amountAtRisk: string | null;
  readonly currency: string | null;
  readonly occurredAt: string | null;
  readonly firstSeen: string;
  readonly lastSeen: string;
  readonly count: number;
  readonly summary: string;
  readonly advice: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly mutedUntil: string | null;
  readonly closedAt: string | null;
  readonly closedBy: "facts" | "person" | null;
}

export interface IncidentDetailJson extends IncidentJson {
  /** Oldest first. */
  readonly history: readonly {
    readonly at: string;
    readonly actor: string;
    readonly step: string;
    readonly note: string | null;
    readonly evidence: Readonly<Record<string, unknown>>;
  }[];
}

/** One incident in its outside shape. */
export function presentIncident(incident: Incident, now: Date): IncidentJson {
  const { id, code, severity, basis, rail, scope, intents, charges, currency } = incident;
  const { count, summary, advice, evidence, closedBy, amountAtRisk } = incident;
  return {
    ...{ id, code, severity, status: statusAt(incident, now), basis, rail, scope },
    operation: incident.operationId,
    ...{ intents, charges },
    amountAtRisk: amountAtRisk === null ? null : String(amountAtRisk),
    currency,
    occurredAt: isoOrNull(incident.occurredAt),
    firstSeen: incident.firstSeen.toISOString(),
    lastSeen: incident.lastSeen.toISOString(),
    ...{ count, summary, advice, evidence },
    mutedUntil: isoOrNull(incident.mutedUntil),
    closedAt: isoOrNull(incident.closedAt),
    closedBy,
  };
}

function isoOrNull(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}

/** The incidents that match, newest first. */
export async function listIncidents(
  db: Db,
  filter: IncidentFilter,
  now: Date,
): Promise<readonly IncidentJson[]> {
  const list: IncidentJson[] = [];
  for await (const incident of eachIncident(db, filter, now)) {
    list.push(presentIncident(incident, now));
  }
  return list;
}

/** One incident with its history, or `null` when there is none of that id. */
export async function showIncident(
  db: Db,
  id: string,
  now: Date,
): Promise<IncidentDetailJson | null> {
  const incident = await readIncident(db, id);
  if (incident === null) return null;
  const entries = await readEntries(db, id);
  return { ...presentIncident(incident, now), history: entries.map(presentEntry) };
}

function presentEntry(entry: EntryRow): IncidentDetailJson["history"][number] {
  return { ...entry, at: entry.at.toISOString() };
}
