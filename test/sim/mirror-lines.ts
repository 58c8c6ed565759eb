/** The mirror and the matching as lines of text: what any order of delivery has to lead to. */
import type { TestDb } from "../support/db.ts";

const LINES = `
select concat_ws(' ', 'charge', c.charge_id, c.status, c.amount, c.amount_captured, c.currency,
                 c.captured, c.payer, c.payment_intent, c.intent_mark, c.reference, c.owned,
                 'of', m.intent_id, 'by', m.basis, 'in', m.operation_id, m.conflict) as line
  from tallyd.charge c
  left join tallyd.charge_match m using (scope, charge_id)
 union all
select concat_ws(' ', 'payment', p.id, p.status, p.amount, p.amount_received, p.currency,
                 p.customer, p.latest_charge, p.intent_mark, p.reference, p.owned)
  from tallyd.stripe_payment_intent p
 union all
select concat_ws(' ', 'refund', r.refund_id, r.charge_id, r.status, r.amount)
  from tallyd.refund r
 union all
select concat_ws(' ', 'dispute', d.dispute_id, d.charge_id, d.status, d.amount, d.refundable)
  from tallyd.dispute d
 union all
select concat_ws(' ', 'key', k.object_id, k.idempotency_key)
  from tallyd.object_key k
 union all
select concat_ws(' ', 'row', i.intent_id, i.state, i.amount, i.charge_id,
                 i.recorded_as ->> 'amount', 'in', m.operation_id)
  from tallyd.intent i
  left join tallyd.intent_match m using (intent_id)
 order by line`;

/** Everything that is known, each fact as a line that begins with its kind and its id. */
export async function readMirrorLines(db: TestDb): Promise<string[]> {
  const found = await db.pool.query<{ line: string }>(LINES);
  return found.rows.map((row) => row.line);
}
