import type { Db } from "./pool.ts";
import { addMs } from "../core/clock.ts";

/** Events exist that no webhook brought, and none came after the first of them. */
export interface WebhookSilence {
  readonly missed: number;
  /** When the first missed event was made, in Stripe's clock. */
  readonly since: Date;
}

// Stripe delivers within seconds; a quarter of an hour leaves room for its first retries.
const GRACE_MS = 15 * 60_000;
// Events that the sweep met much later than they were made say that tallyd was down (or new), not
// that webhooks were silent. Longer than the slowest beat of the sweep.
const MET_LATE_MS = 60 * 60_000;
// An endpoint that is silent for longer has been told of already; this bounds the look.
const LOOKBACK_MS = 3 * 86_400_000;

/**
 * Are webhooks of this scope silent while events exist (invariant 11)? `null`: no. `watchedFrom`:
 * events made before tallyd first swept do not count. Ask only where webhooks are expected.
 */
export async function webhookSilence(
  db: Db,
  input: { readonly scope: string; readonly now: Date; readonly watchedFrom: Date | null },
): Promise<WebhookSilence | null> {
  const oldest = addMs(input.now, -LOOKBACK_MS);
  const from =
    input.watchedFrom !== null && input.watchedFrom > oldest ? input.watchedFrom : oldest;
  const found = await db.query<{ missed: number; since: Date | null }>(
    `with heard as (
       select max(webhook_at) as at
         from tallyd.inbox
        where scope = $1
          and created_at >= $2
          and webhook_at is not null
     ),
     unheard as (
       select i.created_at
         from tallyd.inbox i
        cross join heard h
        where i.scope = $1
          and i.created_at >= $2
          and i.created_at < $3
          and i.webhook_at is null
          and i.received_at < i.created_at + $4 * interval '1 millisecond'
          -- A webhook that came later shows that the endpoint lives: no silence, just a miss.
          and (h.at is null or i.created_at > h.at)
     )
     select count(*)::int as missed,
            min(created_at) as since
       from unheard`,
    [input.scope, from, addMs(input.now, -GRACE_MS), MET_LATE_MS],
  );
  const row = found.rows[0];
  if (row?.since == null) return null;
  return { missed: row.missed, since: row.since };
}
