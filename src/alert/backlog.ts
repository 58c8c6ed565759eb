/** After an outage: one digest instead of a hundred stale messages. */
import type { Pool } from "pg";

import { addMs } from "../core/clock.ts";
import type { ClaimedMessage } from "../store/outbox.ts";
import { NEVER, enqueue } from "../store/outbox.ts";
import { lockBacklog, markMerged } from "../store/outbox-merge.ts";
import { withTx } from "../store/tx.ts";
import type { Digest } from "./digest.ts";
import { digestOf, sumDigests } from "./digest.ts";
import { digestPayload } from "./enqueue.ts";
import { readPayload } from "./payload.ts";
import type { Channel } from "./route.ts";

// A message that could not be sent for a minute is late: at one a second, a healthy channel is
// through with everything that one run may tell.
const LATE_AFTER_MS = 60_000;
// The same number that makes a digest of one run's news.
const LATE_MAX = 10;
// A day of full minutes; what is beyond comes with the next call.
const GATHERED_MAX = 10_000;

/**
 * Puts late messages of a channel into one digest when there are many of them, and, once the
 * channel is healthy, those that may not have arrived and are not repeated any more. Gives the
 * number gathered.
 */
export async function gatherBacklog(
  pool: Pool,
  about: { readonly channel: Channel; readonly now: Date; readonly healthy: boolean },
): Promise<number> {
  const { channel, now } = about;
  return withTx(pool, async (tx) => {
    const before = addMs(now, -LATE_AFTER_MS);
    const late = await lockBacklog(tx, { channel, before, limit: GATHERED_MAX });
    const content = late.flatMap(contentOf);
    // One that waits already takes up what comes meanwhile: the outage ends in one message.
    const many = content.length > LATE_MAX || (content.length > 1 && content.some(isBacklog));
    const gathered = content.filter(({ message }) => many || (about.healthy && isParked(message)));
    if (gathered.length === 0) return 0;
    const digest = sumDigests(
      "backlog",
      gathered.map((one) => one.digest),
    );
    const id = await enqueue(tx, {
      incidentId: null,
      channel,
      kind: "backlog",
      severity: digest.criticals > 0 ? "critical" : "warning",
      payload: digestPayload(digest),
      createdAt: now,
      dueAt: now,
    });
    await markMerged(
      tx,
      gathered.map((one) => one.message.messageId),
      id,
    );
    return gathered.length;
  });
}

function isParked(message: ClaimedMessage): boolean {
  return message.status === "uncertain" && message.dueAt >= NEVER;
}

interface Content {
  readonly message: ClaimedMessage;
  readonly digest: Digest;
}

function isBacklog({ message }: Content): boolean {
  return message.kind === "backlog";
}

/** Messages of another kind, which no digest can tell, stay as they are. */
function contentOf(message: ClaimedMessage): readonly Content[] {
  const { item, digest } = readPayload(message.payload);
  if (digest !== undefined) return [{ message, digest }];
  return item === undefined ? [] : [{ message, digest: digestOf("backlog", [item]) }];
}
