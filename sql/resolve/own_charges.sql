-- The charges that were matched to a row, oldest first.
select c.charge_id,
       c.payment_intent,
       c.status,
       c.succeeded,
       c.captured,
       c.mirrored,
       c.amount,
       c.amount_captured,
       c.net,
       c.currency,
       c.payee,
       h.failure_code,
       c.basis,
       c.conflict is not null as torn,
       c.created_at
  from tallyd.charge_fact c
  join tallyd.charge h using (scope, charge_id)
 where c.intent_id = :'intent'
 order by c.created_at, c.charge_id
