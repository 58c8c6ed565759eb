-- Refunds and disputes of charges and payment intents, oldest first.
with objects as (
  select scope, id
    from unnest(:'scopes'::text[], :'ids'::text[]) as o (scope, id)
), back as (
  select 'refund' as kind, r.refund_id as id, r.scope, r.charge_id, r.payment_intent, r.amount, r.currency,
         r.status, coalesce(r.failure_reason, r.reason) as reason, r.created_at
    from objects o
    join tallyd.refund_fact r on r.scope = o.scope and r.charge_id = o.id
  union
  select 'refund', r.refund_id, r.scope, r.charge_id, r.payment_intent, r.amount, r.currency, r.status,
         coalesce(r.failure_reason, r.reason), r.created_at
    from objects o
    join tallyd.refund r on r.scope = o.scope and r.payment_intent = o.id
  union
  select 'dispute', d.dispute_id, d.scope, d.charge_id, d.payment_intent, d.amount, d.currency, d.status,
         d.reason, d.created_at
    from objects o
    join tallyd.dispute d on d.scope = o.scope and d.charge_id = o.id
)
select kind, id, scope, charge_id, payment_intent, amount, currency, status, reason, created_at
  from back
 order by created_at, id
 limit :'limit'
