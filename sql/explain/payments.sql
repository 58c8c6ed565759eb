-- The payment intents of some operations: those of their charges, and those that their rows mark.
with ids as (
  select c.scope, c.payment_intent as id
    from tallyd.charge_match m
    join tallyd.charge c using (scope, charge_id)
   where m.operation_id = any (:'operations'::text[])
     and c.payment_intent is not null
  union
  select l.scope, l.payment_intent
    from tallyd.intent_match m
    join tallyd.intent_payment l using (intent_id)
   where m.operation_id = any (:'operations'::text[])
)
select p.id, p.scope, p.status, p.amount, p.currency, p.latest_charge, p.failure_code,
       p.cancellation_reason, p.created_at, p.missing_since
  from ids
  join tallyd.stripe_payment_intent p using (scope, id)
 order by p.created_at, p.id
 limit :'limit'
