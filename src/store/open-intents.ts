import type { Db } from "./pool.ts";

/**
 * When the oldest unresolved Stripe row of a scope was created, by the team's clock; `null`: none
 * is unresolved. It says how far back Stripe must be read to decide about it.
 */
export async function oldestOpenIntent(db: Db, scope: string): Promise<Date | null> {
  const found = await db.query<{ oldest: Date | null }>(
    `select min(created_at) as oldest
       from tallyd.intent
      where state in ('key_minted', 'in_flight', 'failed_retryable', 'reconciling')
        and rail = 'stripe'
        and scope = $1
        and vanished_at is null`,
    [scope],
  );
  return found.rows[0]?.oldest ?? null;
}
