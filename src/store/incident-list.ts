import type { Code, Severity } from "../core/finding.ts";
import type { Incident, IncidentStatus } from "../core/incident.ts";
import type { IncidentRow } from "./incident-row.ts";
import { INCIDENT_COLUMNS, incidentFrom } from "./incident-row.ts";
import type { Db } from "./pool.ts";

/** Which incidents to list; an empty list or a missing field means all. */
export interface IncidentFilter {
  /** As seen at `now`: a mute that has run out counts as open. */
  readonly statuses?: readonly IncidentStatus[];
  readonly codes?: readonly Code[];
  readonly severities?: readonly Severity[];
  /** An intent, charge or operation that the incident names. */
  readonly about?: string;
}

/** A line of an incident's history, as it is read. */
export interface EntryRow {
  readonly at: Date;
  readonly actor: string;
  readonly step: string;
  readonly note: string | null;
  readonly evidence: Readonly<Record<string, unknown>>;
}

// A page of a thousand rows keeps the memory flat however many incidents there are.
const PAGE_ROWS_MAX = 1_000;

/** Reads incidents in pages, newest first. */
export async function* eachIncident(
  db: Db,
  filter: IncidentFilter,
  now: Date,
): AsyncGenerator<Incident, void, undefined> {
  let after: Incident | undefined;
  for (;;) {
    const found: readonly IncidentRow[] = (
      await db.query<IncidentRow>(PAGE, [
        now,
        filter.statuses ?? [],
        filter.codes ?? [],
        filter.severities ?? [],
        filter.about ?? null,
        after?.firstSeen ?? null,
        after?.id ?? null,
        PAGE_ROWS_MAX,
      ])
    ).rows;
    for (const row of found) {
      after = incidentFrom(row);
      yield after;
    }
    if (found.length < PAGE_ROWS_MAX) return;
  }
}

// Times are compared in whole milliseconds, as they are written and as a Date holds them.
const PAGE = `
select ${INCIDENT_COLUMNS}
  from tallyd.incident i
 where (cardinality($2::text[]) = 0
        or case when i.status = 'muted' and i.muted_until <= $1 then 'open' else i.status end
           = any ($2::text[]))
   and (cardinality($3::text[]) = 0 or i.code = any ($3::text[]))
   and (cardinality($4::text[]) = 0 or i.severity = any ($4::text[]))
   and ($5::text is null
        or $5 = any (i.intents)
        or $5 = any (i.charges)
        or i.operation_id = $5)
   and ($6::timestamptz is null or (i.first_seen, i.id) < ($6, $7::text))
 order by i.first_seen desc, i.id desc
 limit $8`;

/** One incident, or `null` when there is none of that id. */
export async function readIncident(db: Db, id: string): Promise<Incident | null> {
  const found = await db.query<IncidentRow>(
    `select ${INCIDENT_COLUMNS}
       from tallyd.incident i
      where i.id = $1`,
    [id],
  );
  return found.rows[0] === undefined ? null : incidentFrom(found.rows[0]);
}

/** The history of an incident, oldest line first. */
export async function readEntries(db: Db, id: string): Promise<readonly EntryRow[]> {
  const found = await db.query<EntryRow>(
    `select e.at, e.actor, e.step, e.note, e.evidence
       from tallyd.incident_entry e
      where e.incident_id = $1
      order by e.entry_id`,
    [id],
  );
  return found.rows;
}

/** Is there a line in an incident's history that carries this mark? */
export async function hasMark(db: Db, id: string, mark: string): Promise<boolean> {
  const found = await db.query(
    `select 1
       from tallyd.incident_entry e
      where e.incident_id = $1
        and e.evidence ->> 'mark' = $2
      limit 1`,
    [id, mark],
  );
  return found.rows.length > 0;
}

/** What got worse about an incident after a time, in words, oldest first. */
export async function worseSince(db: Db, id: string, since: Date): Promise<readonly string[]> {
  const found = await db.query<{ words: string }>(
    `select w.words
       from tallyd.incident_entry e
      cross join lateral jsonb_array_elements_text(e.evidence -> 'changes')
                 with ordinality as w (words, place)
      where e.incident_id = $1
        and e.at > $2
        and e.step in ('worsened', 'reopened', 'opened')
      order by e.entry_id, w.place`,
    [id, since],
  );
  return found.rows.map((row) => row.words);
}

/**
 * How many incidents make exit code 3 (README.md, outside contract): open or acknowledged ones of
 * severity
 * warning or critical. A mute that has run out counts as open.
 */
export async function countAlarming(db: Db, now: Date): Promise<number> {
  const found = await db.query<{ alarming: number }>(
    `select count(*)::integer as alarming
       from tallyd.incident i
      where i.status <> 'closed'
        and i.severity in ('warning', 'critical')
        and (i.status in ('open', 'acknowledged') or i.muted_until <= $1)`,
    [now],
  );
  return found.rows[0]?.alarming ?? 0;
}

/** What tallyd says about its own sight: an open finding about sources or settings. */
export interface SightRow {
  readonly id: string;
  readonly code: "coverage_gap" | "config_error";
  readonly severity: Severity;
  readonly summary: string;
}

// A page of health is read by people; `tallyd incidents list` has them all.
const SIGHT_MAX = 20;

/** Open findings about tallyd's sight, the worst first; one that is muted is known. */
export async function openSight(db: Db, now: Date): Promise<readonly SightRow[]> {
  const found = await db.query<SightRow>(
    `select i.id, i.code, i.severity, i.summary
       from tallyd.incident i
      where i.code in ('coverage_gap', 'config_error')
        and i.severity in ('warning', 'critical')
        and i.status <> 'closed'
        and (i.status in ('open', 'acknowledged') or i.muted_until <= $1)
      order by i.severity, i.code desc, i.id
      limit $2`,
    [now, SIGHT_MAX],
  );
  return found.rows;
}

/** Is it blindness, so that health is unknown? Settings that are wrong are open incidents alone. */
export function isBlindness({ code, severity }: SightRow): boolean {
  return code === "coverage_gap" && severity === "critical";
}
