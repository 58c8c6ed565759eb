import type { Db } from "./pool.ts";

/** Events exist that no webhook brought, and none came after the first of them. */
export interface WebhookSilence {
  readonly missed: number;
  /** When the first missed event was made, in Stripe's clock. */
  readonly since: Date;
}

/**
 * Are webhooks of this scope silent while events exist (invariant 11)? `null`: no. The view
 * `tallyd.webhook_silence` says what counts. Ask only where webhooks are expected.
 */
export async function webhookSilence(db: Db, scope: string): Promise<WebhookSilence | null> {
  const found = await db.query<{ missed: bigint; since: Date }>(
    `select missed, since
       from tallyd.webhook_silence
      where scope = $1`,
    [scope],
  );
  const row = found.rows[0];
  return row === undefined ? null : { missed: Number(row.missed), since: row.since };
}
