-- Every refund with the charge that it gives back: the one that the provider names, or, on chain, where a
-- refund is only a transfer in the other direction, the one that match found for it.
create view tallyd.refund_fact as
select r.scope, r.refund_id, r.charge_id, r.payment_intent, r.amount, r.currency, r.status, r.reason,
       r.failure_reason, r.created_at, r.version_at
  from tallyd.refund r
 where r.charge_id is not null
union all
select r.scope, r.refund_id, m.charge_id, r.payment_intent, r.amount, r.currency, r.status, r.reason,
       r.failure_reason, r.created_at, r.version_at
  from tallyd.refund_match m
  join tallyd.refund r on r.scope = m.scope and r.refund_id = m.refund_id
 where r.charge_id is null;
