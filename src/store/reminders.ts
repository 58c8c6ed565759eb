/** The one writer of `tallyd.reminder`: the criticals that people are reminded of, and when. */
import type { PoolClient } from "pg";

/** What the last message about an incident said. */
export interface ToldFacts {
  /** How many charges it named. */
  readonly charges: number;
  /** Minor units as text; `null`: no money was named. */
  readonly amountAtRisk: string | null;
  readonly currency: string | null;
  /** Runs that had found it. */
  readonly count: number;
}

export interface Reminder {
  readonly incidentId: string;
  readonly dueAt: Date;
  /** The news that the waits are counted from. */
  readonly anchorAt: Date;
  readonly facts: ToldFacts;
}

/** Sets reminders, each in the place of an earlier one of its incident. */
export async function saveReminders(tx: PoolClient, reminders: readonly Reminder[]): Promise<void> {
  if (reminders.length === 0) return;
  await tx.query(
    `insert into tallyd.reminder (incident_id, due_at, anchor_at, facts)
     select n."incidentId", n."dueAt", n."anchorAt", n.facts
       from jsonb_to_recordset($1::jsonb) as n
            ("incidentId" text, "dueAt" timestamptz, "anchorAt" timestamptz, facts jsonb)
         on conflict (incident_id) do update
        set due_at = excluded.due_at,
            anchor_at = excluded.anchor_at,
            facts = excluded.facts`,
    [JSON.stringify(reminders)],
  );
}

/** Reminders whose time has come, longest due first and locked. */
export async function lockDueReminders(
  tx: PoolClient,
  due: { readonly now: Date; readonly limit: number },
): Promise<readonly Reminder[]> {
  const found = await tx.query<Reminder>(
    `select r.incident_id as "incidentId", r.due_at as "dueAt", r.anchor_at as "anchorAt", r.facts
       from tallyd.reminder r
      where r.due_at <= $1
      order by r.due_at, r.incident_id
      limit $2
        for update skip locked`,
    [due.now, due.limit],
  );
  return found.rows;
}

/** Takes reminders away: nobody needs to be reminded of these any more. */
export async function removeReminders(
  tx: PoolClient,
  incidentIds: readonly string[],
): Promise<void> {
  if (incidentIds.length === 0) return;
  await tx.query(
    `delete from tallyd.reminder
      where incident_id = any ($1::text[])`,
    [incidentIds],
  );
}
