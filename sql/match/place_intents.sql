-- The operation of an intent: its reference inside its account, else its payment identifier, else the
-- row alone. Rows of one payment identifier follow the reference that any of them carries.
-- Answers the operations that were left and the ones that were entered.
with wanted as (
  select i.intent_id,
         coalesce(
           'ref:' || i.account_id || ':' || coalesce(i.reference, shared.reference),
           'pid:' || i.account_id || ':' || i.payment_id,
           'intent:' || i.intent_id
         ) as operation_id
    from tallyd.intent i
    left join lateral (
           select min(o.reference) as reference
             from tallyd.intent o
            where o.payment_id = i.payment_id
              and o.account_id = i.account_id
              and o.reference is not null
         ) shared on i.payment_id is not null
   where i.intent_id = any (:'intents'::text[])
), before as (
  select m.intent_id, m.operation_id
    from tallyd.intent_match m
   where m.intent_id = any (:'intents'::text[])
), placed as (
  insert into tallyd.intent_match as m (intent_id, operation_id)
  select intent_id, operation_id
    from wanted
      on conflict (intent_id) do update
     set operation_id = excluded.operation_id
   where m.operation_id <> excluded.operation_id
)
select operation_id from before
union
select operation_id from wanted
