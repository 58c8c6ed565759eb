-- The payment intents of a row: those that its marks point to, and those of its own charges. One whose
-- metadata repeats the key has no index of its own and is looked for in the time of the attempts.
with ids as (
  select l.payment_intent, l.basis
    from tallyd.intent_payment l
   where l.intent_id = :'intent'
     and l.scope = :'scope'
  union all
  select c.payment_intent, m.basis
    from tallyd.charge_match m
    join tallyd.charge c using (scope, charge_id)
   where m.intent_id = :'intent'
     and m.scope = :'scope'
     and c.payment_intent is not null
  union all
  select p.id, 'key'
    from tallyd.stripe_payment_intent p
   where p.scope = :'scope'
     and p.created_at >= :'from'::timestamptz
     and p.created_at < :'to'::timestamptz
     and p.key_mark = :'key'
), named as (
  select payment_intent, min(basis) as basis
    from ids
   group by payment_intent
)
select p.id,
       p.status,
       p.amount,
       p.currency,
       p.failure_code,
       p.cancellation_reason,
       n.basis,
       p.created_at,
       p.version_at,
       p.seen_at,
       p.missing_since
  from named n
  join tallyd.stripe_payment_intent p on p.scope = :'scope' and p.id = n.payment_intent
 order by p.created_at, p.id
