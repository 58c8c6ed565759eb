import type { Db } from "./pool.ts";

/**
 * Ids of mirrored Stripe objects of a scope that were not final when they were last read, newest
 * first. When events are lost for good, these are what may have changed unseen.
 */
export async function unsettledObjects(
  db: Db,
  input: { readonly scope: string; readonly createdBefore: Date; readonly limit: number },
): Promise<string[]> {
  const found = await db.query<{ id: string }>(
    `select id
       from (select id, created_at
               from tallyd.stripe_payment_intent
              where scope = $1
                and created_at < $2
                and status in ('requires_confirmation', 'requires_action', 'processing',
                               'requires_capture')
             union all
             select charge_id, created_at
               from tallyd.charge
              where scope = $1
                and created_at < $2
                and rail = 'stripe'
                and (status = 'pending' or (status = 'succeeded' and not captured))) as unsettled
      order by created_at desc, id
      limit $3`,
    [input.scope, input.createdBefore, input.limit],
  );
  return found.rows.map((row) => row.id);
}
