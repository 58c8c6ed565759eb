/** Messages of `tallyd.outbox` that are told otherwise: by a digest, a newer word, another way. */
import type { PoolClient } from "pg";

import type { ClaimedMessage } from "./outbox.ts";
import { ABOUT_COLUMNS } from "./outbox.ts";
import type { Db } from "./pool.ts";

/**
 * Waiting messages of a channel made before `before`, oldest first and locked, with those that may
 * not have arrived and are not repeated any more. Their words stay in the database: a digest is
 * made of what they are about, and thousands of messages in full would be a burst of memory.
 */
export async function lockBacklog(
  tx: PoolClient,
  about: { readonly channel: string; readonly before: Date; readonly limit: number },
): Promise<readonly ClaimedMessage[]> {
  const found = await tx.query<ClaimedMessage>(
    `select ${ABOUT_COLUMNS},
            o.payload || '{"text": "", "blocks": []}'::jsonb as payload
       from tallyd.outbox o
      where o.channel = $1
        and o.status in ('pending', 'uncertain')
        and o.created_at <= $2
      order by o.message_id
      limit $3
        for update skip locked`,
    [about.channel, about.before, about.limit],
  );
  return found.rows;
}

/**
 * Drops what still waits to be said about incidents for whom `into` is the newer word: worsenings
 * that wait for company, and repeats of what may have arrived. Said after it they would be wrong.
 */
export async function dropOutdated(
  tx: PoolClient,
  about: {
    readonly channel: string;
    readonly incidentIds: readonly string[];
    readonly into: bigint;
    readonly now: Date;
  },
): Promise<void> {
  await tx.query(
    `update tallyd.outbox
        set status = 'merged',
            merged_into = $3
      where incident_id = any ($2::text[])
        and channel = $1
        and status in ('pending', 'uncertain')
        and (status = 'uncertain' or due_at > $4)
        and message_id < $3`,
    [about.channel, about.incidentIds, about.into, about.now],
  );
}

/** Sends what waits for a channel by another one instead; gives their number. */
export async function moveWaiting(
  db: Db,
  way: {
    readonly from: string;
    readonly to: string;
    /** Messages with this last error stay. */
    readonly except: string;
  },
): Promise<number> {
  const moved = await db.query(
    `update tallyd.outbox
        set channel = $2
      where channel = $1
        and status in ('pending', 'uncertain')
        and last_error is distinct from $3`,
    [way.from, way.to, way.except],
  );
  return moved.rowCount ?? 0;
}

/** Sends a message by another channel too. */
export async function copyMessage(db: Db, messageId: bigint, to: string): Promise<void> {
  await db.query(
    `insert into tallyd.outbox (incident_id, channel, kind, severity, payload, created_at, due_at)
     select o.incident_id, $2, o.kind, o.severity, o.payload, o.created_at, o.due_at
       from tallyd.outbox o
      where o.message_id = $1`,
    [messageId, to],
  );
}

/** Notes that a digest tells these messages; they are not sent themselves any more. */
export async function markMerged(
  tx: PoolClient,
  messageIds: readonly bigint[],
  into: bigint,
): Promise<void> {
  await tx.query(
    `update tallyd.outbox
        set status = 'merged',
            merged_into = $2
      where message_id = any ($1::bigint[])`,
    [messageIds, into],
  );
}
