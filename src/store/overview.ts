/** Numbers about the whole database, for the metrics. Reads only. */
import type { Db } from "./pool.ts";

/** Events by where they stand, and how old the oldest waiting one is. */
export interface InboxOverview {
  readonly byStatus: readonly { readonly status: string; readonly events: number }[];
  /** Seconds that the oldest due event has waited; 0: none waits. */
  readonly lagSeconds: number;
}

// Done events are kept for weeks; counting them all at every scrape would cost more than it tells.
const WAITING = ["pending", "error", "dead"];

/** Events that wait, or were given up. */
export async function inboxOverview(db: Db, now: Date): Promise<InboxOverview> {
  const found = await db.query<{ status: string; events: number; lag: number }>(
    `select s.status,
            count(i.event_id)::float8 as events,
            coalesce(extract(epoch from $2 - min(i.received_at)), 0)::float8 as lag
       from unnest($1::text[]) as s (status)
       left join tallyd.inbox i on i.status = s.status
      group by s.status
      order by s.status`,
    [WAITING, now],
  );
  const due = found.rows.filter(({ status }) => status !== "dead");
  return {
    byStatus: found.rows.map(({ status, events }) => ({ status, events })),
    lagSeconds: Math.max(0, ...due.map(({ lag }) => lag)),
  };
}

/** Incidents by code, severity and status; closed ones are counted too. */
export async function incidentCounts(db: Db): Promise<
  readonly {
    readonly code: string;
    readonly severity: string;
    readonly status: string;
    readonly incidents: number;
  }[]
> {
  const found = await db.query<{
    code: string;
    severity: string;
    status: string;
    incidents: number;
  }>(
    `select i.code, i.severity, i.status, count(*)::float8 as incidents
       from tallyd.incident i
      group by i.code, i.severity, i.status
      order by i.code, i.severity, i.status`,
  );
  return found.rows;
}

/** Messages that are not sent yet, by channel. */
export async function outboxOverview(
  db: Db,
  now: Date,
): Promise<
  readonly { readonly channel: string; readonly pending: number; readonly ageSeconds: number }[]
> {
  const found = await db.query<{ channel: string; pending: number; ageSeconds: number }>(
    `select c.channel,
            count(o.message_id)::float8 as pending,
            coalesce(extract(epoch from $1 - min(o.created_at)), 0)::float8 as "ageSeconds"
       from unnest(array['slack', 'slack_critical', 'log', 'webhook', 'pagerduty']) as c (channel)
       left join tallyd.outbox o
         on o.channel = c.channel
        and o.status in ('pending', 'uncertain')
      group by c.channel
      order by c.channel`,
    [now],
  );
  return found.rows;
}

/** Resolutions since `since`, by decision and outcome. */
export async function resolutionCounts(
  db: Db,
  since: Date,
): Promise<
  readonly { readonly decision: string; readonly outcome: string; readonly resolutions: number }[]
> {
  const found = await db.query<{ decision: string; outcome: string; resolutions: number }>(
    `select r.decision, r.outcome, count(*)::float8 as resolutions
       from tallyd.resolution r
      where r.decided_at > $1
      group by r.decision, r.outcome
      order by r.decision, r.outcome`,
    [since],
  );
  return found.rows;
}

/** Milliseconds by which the database's clock is ahead of `now`. */
export async function clockOffsetMs(db: Db, now: () => Date): Promise<number> {
  const asked = now().getTime();
  const found = await db.query<{ at: Date }>("select clock_timestamp() as at");
  const answered = now().getTime();
  const at = found.rows[0]?.at.getTime() ?? answered;
  // The answer was made about half-way between question and receipt.
  return at - (asked + answered) / 2;
}
