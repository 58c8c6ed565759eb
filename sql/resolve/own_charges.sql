-- The charges of a row, oldest first: those that were matched to it, and further attempts of its own
-- payment intents that no other row claims (a row that names a failed attempt owns the later success
-- too, case B07).
with payments as (
  select l.scope, l.payment_intent, min(l.basis) as basis
    from tallyd.intent_payment l
   where l.intent_id = :'intent'
   group by l.scope, l.payment_intent
), own as (
  select m.scope, m.charge_id, m.basis
    from tallyd.charge_match m
   where m.intent_id = :'intent'
  union
  select c.scope, c.charge_id, p.basis
    from payments p
    join tallyd.charge c on c.scope = p.scope and c.payment_intent = p.payment_intent
    left join tallyd.charge_match m on m.scope = c.scope and m.charge_id = c.charge_id
   where m.intent_id is null
)
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
       c.asset,
       h.failure_code,
       o.basis,
       c.conflict is not null as torn,
       c.created_at
  from own o
  join tallyd.charge_fact c using (scope, charge_id)
  join tallyd.charge h using (scope, charge_id)
 order by c.created_at, c.position, c.charge_id
