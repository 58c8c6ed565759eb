/**
 * The one writer of `tallyd.outbox`, with `./outbox-merge.ts`. A message is enqueued in the
 * transaction of the incident that caused it, and delivered by whoever holds its channel's lock.
 */
import type { PoolClient } from "pg";

import type { Severity } from "../core/finding.ts";
import type { Db } from "./pool.ts";

/** A message to enqueue; `payload` is what the alert layer made of it. */
export interface NewMessage {
  readonly incidentId: string | null;
  readonly channel: string;
  readonly kind: string;
  readonly severity: Severity;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  readonly dueAt: Date;
}

/** A message that was claimed for sending. */
export interface ClaimedMessage {
  readonly messageId: bigint;
  readonly incidentId: string | null;
  readonly channel: string;
  readonly kind: string;
  readonly severity: Severity;
  readonly payload: unknown;
  readonly createdAt: Date;
  /** Sendings that were begun and may have arrived, this one included. */
  readonly attempts: number;
  readonly status: "pending" | "uncertain";
  readonly dueAt: Date;
  /** Of the last attempt; `null`: none failed. */
  readonly lastError: string | null;
}

// The CHECK of last_error.
const ERROR_CHARS_MAX = 2_000;

/** Adds one message and gives its id. */
export async function enqueue(tx: Db, message: NewMessage): Promise<bigint> {
  const added = await tx.query<{ message_id: bigint }>(
    `insert into tallyd.outbox
            (incident_id, channel, kind, severity, payload, created_at, due_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     returning message_id`,
    [
      message.incidentId,
      message.channel,
      message.kind,
      message.severity,
      JSON.stringify(message.payload),
      message.createdAt,
      message.dueAt,
    ],
  );
  const id = added.rows[0]?.message_id;
  if (id === undefined) throw new Error("the outbox gave no id for a new message");
  return id;
}

/** An untried message of this kind that waits, locked; `incidentId` `null`: any of the kind. */
export async function lockWaiting(
  tx: PoolClient,
  about: { readonly channel: string; readonly kind: string; readonly incidentId: string | null },
): Promise<{ readonly messageId: bigint; readonly payload: unknown } | null> {
  // Skips a row that is being claimed at this moment: its text is on its way already.
  const found = await tx.query<{ message_id: bigint; payload: unknown }>(
    `select o.message_id, o.payload
       from tallyd.outbox o
      where o.channel = $1
        and o.kind = $2
        and ($3::text is null or o.incident_id = $3)
        and o.status = 'pending'
        and o.attempts = 0
      order by o.message_id
      limit 1
        for update skip locked`,
    [about.channel, about.kind, about.incidentId],
  );
  const row = found.rows[0];
  return row === undefined ? null : { messageId: row.message_id, payload: row.payload };
}

/** Replaces the text of a message that {@link lockWaiting} locked. */
export async function replacePayload(
  tx: PoolClient,
  message: {
    readonly messageId: bigint;
    readonly severity: Severity;
    readonly payload: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  await tx.query(
    `update tallyd.outbox
        set payload = $2,
            severity = $3
      where message_id = $1`,
    [message.messageId, JSON.stringify(message.payload), message.severity],
  );
}

/** Single alerts per channel that were made since `since`. */
export async function singlesSince(
  tx: PoolClient,
  since: Date,
): Promise<readonly { readonly channel: string; readonly count: number }[]> {
  const found = await tx.query<{ channel: string; count: number }>(
    `select o.channel, count(*)::integer as count
       from tallyd.outbox o
      where o.created_at > $1
        and o.incident_id is not null
      group by o.channel`,
    [since],
  );
  return found.rows;
}

/** The kind of the newest message about each incident on a channel for programs. */
export async function newestKinds(
  tx: PoolClient,
  about: { readonly channel: string; readonly incidentIds: readonly string[] },
): Promise<readonly { readonly incidentId: string; readonly kind: string }[]> {
  const found = await tx.query<{ incidentId: string; kind: string }>(
    `select distinct on (o.incident_id) o.incident_id as "incidentId", o.kind
       from tallyd.outbox o
      where o.incident_id = any ($1::text[])
        and o.channel = $2
        and o.channel in ('webhook', 'pagerduty')
      order by o.incident_id, o.message_id desc`,
    [about.incidentIds, about.channel],
  );
  return found.rows;
}

/** When the newest message of a kind was made; `null`: never. */
export async function newestOf(
  tx: PoolClient,
  about: { readonly channel: string; readonly kind: string; readonly since: Date },
): Promise<Date | null> {
  const found = await tx.query<{ created_at: Date }>(
    `select o.created_at
       from tallyd.outbox o
      where o.channel = $1
        and o.kind = $2
        and o.created_at > $3
      order by o.created_at desc
      limit 1`,
    [about.channel, about.kind, about.since],
  );
  return found.rows[0]?.created_at ?? null;
}

/** Which messages are due. */
export interface Due {
  readonly channel: string;
  readonly now: Date;
  /** Untried messages that only wait for company count too. */
  readonly early: boolean;
  /** A message waits for earlier ones about its incident: a program must not see an end first. */
  readonly inOrder: boolean;
}

// Of the message `n`; the parameters are those of `dueParameters`.
const IS_DUE = `
            n.channel = $1
        and n.status in ('pending', 'uncertain')
        and (n.due_at <= $2 or ($3 and n.attempts = 0 and n.status = 'pending'))
        and not ($4 and exists (
              select 1
                from tallyd.outbox e
               where e.incident_id = n.incident_id
                 and e.channel = n.channel
                 and e.channel in ('webhook', 'pagerduty')
                 and e.message_id < n.message_id
                 and e.status in ('pending', 'uncertain')))`;

function dueParameters({ channel, now, early, inOrder }: Due): unknown[] {
  return [channel, now, early, inOrder];
}

/** Is there a message that {@link claimNext} would claim now? */
export async function hasDue(db: Db, about: Due): Promise<boolean> {
  const found = await db.query(
    `select 1
       from tallyd.outbox n
      where ${IS_DUE}
      limit 1`,
    dueParameters(about),
  );
  return found.rows.length > 0;
}

/**
 * Claims the next message of a channel and counts the attempt, in one short transaction of its
 * own. `null`: none is due.
 */
export async function claimNext(db: Db, about: Due): Promise<ClaimedMessage | null> {
  const found = await db.query<ClaimedMessage>(
    `update tallyd.outbox o
        set attempts = o.attempts + 1
      where o.message_id = (
              select n.message_id
                from tallyd.outbox n
               where ${IS_DUE}
               order by n.due_at, n.message_id
               limit 1
                 for update skip locked)
     returning ${CLAIMED_COLUMNS}`,
    dueParameters(about),
  );
  return found.rows[0] ?? null;
}

/** What a claimed message holds beside its words. */
export const ABOUT_COLUMNS = `
  o.message_id as "messageId", o.incident_id as "incidentId", o.channel, o.kind, o.severity,
  o.created_at as "createdAt", o.attempts, o.status, o.due_at as "dueAt",
  o.last_error as "lastError"`;

const CLAIMED_COLUMNS = `${ABOUT_COLUMNS}, o.payload`;

/** What became of a claimed message. */
export type Fate =
  | { readonly status: "sent"; readonly at: Date }
  /** Tried again at `dueAt`. `uncertain`: it may have arrived. */
  | {
      readonly status: "pending" | "uncertain";
      readonly dueAt: Date;
      readonly error: string;
      /** False: it certainly did not arrive, so the attempt does not count. */
      readonly counted: boolean;
    }
  | { readonly status: "dead"; readonly error: string };

// Due time of an uncertain message that is not repeated any more: the digest of the next working
// moment names it.
export const NEVER = new Date("9999-01-01T00:00:00Z");

/** Writes down what became of a message. */
export async function settle(db: Db, messageId: bigint, fate: Fate): Promise<void> {
  await db.query(
    `update tallyd.outbox
        set status = $2,
            sent_at = $3,
            due_at = coalesce($4, due_at),
            attempts = attempts - $5,
            last_error = $6
      where message_id = $1
        -- A newer word may have taken its place while it was sent.
        and ($2 = 'sent' or status in ('pending', 'uncertain'))`,
    [
      messageId,
      fate.status,
      fate.status === "sent" ? fate.at : null,
      "dueAt" in fate ? fate.dueAt : null,
      "counted" in fate && !fate.counted ? 1 : 0,
      "error" in fate ? fate.error.slice(0, ERROR_CHARS_MAX) : null,
    ],
  );
}
