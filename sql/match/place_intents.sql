-- The operation of an intent: its reference inside its account, else its payment identifier, else the
-- row alone. A row without a reference of its own has that of the charges which its other marks tie to
-- it: many teams keep the order number in the provider's metadata alone (cases B02, B03). Rows of one
-- payment identifier follow the reference that any of them carries.
-- Answers the operations that were left and the ones that were entered, and whether any row moved.
with named as (
  select i.intent_id, i.account_id, i.payment_id,
         coalesce(i.reference, shared.reference, charged.reference) as reference
    from tallyd.intent i
    left join lateral (
           select min(o.reference) as reference
             from tallyd.intent o
            where o.payment_id = i.payment_id
              and o.account_id = i.account_id
              and o.reference is not null
         ) shared on i.payment_id is not null
    left join lateral (
           select min(coalesce(c.reference, p.reference)) as reference
             from tallyd.charge_match m
             join tallyd.charge c on c.scope = m.scope and c.charge_id = m.charge_id
             left join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
            where m.intent_id = i.intent_id
              and m.basis <> 'reference'
         ) charged on true
   where i.intent_id = any (:'intents'::text[])
), wanted as (
  select intent_id, reference,
         coalesce(
           'ref:' || account_id || ':' || reference,
           'pid:' || account_id || ':' || payment_id,
           'intent:' || intent_id
         ) as operation_id
    from named
), before as (
  select m.intent_id, m.operation_id
    from tallyd.intent_match m
   where m.intent_id = any (:'intents'::text[])
), placed as (
  insert into tallyd.intent_match as m (intent_id, operation_id, reference)
  select intent_id, operation_id, reference
    from wanted
      on conflict (intent_id) do update
     set operation_id = excluded.operation_id,
         reference = excluded.reference
   where (m.operation_id, m.reference) is distinct from (excluded.operation_id, excluded.reference)
  returning m.intent_id
)
select o.operation_id, exists (select from placed) as moved
  from (
         select operation_id from before
          union
         select operation_id from wanted
       ) o
