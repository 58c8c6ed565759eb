--! title: One idempotency key is used for different things
--! severity: warning
--! needs: local
--! advice: Give each operation its own key: a refund or capture under the key of the charge gets the wrong replay, and a key shared by accounts mixes their payments.
--
-- The same key for different kinds of call or, in one scope, for different accounts; and marks of one charge
-- that point to different rows.
with touched as (
  select distinct i.scope, i.idempotency_key
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.idempotency_key is not null
), shared as (
  select t.scope, t.idempotency_key,
         array_agg(i.intent_id order by i.created_at, i.intent_id) as intents,
         (array_agg(i.operation_id order by i.created_at, i.intent_id))[1] as operation_id,
         count(distinct i.kind) as kinds,
         count(distinct i.account_id) as accounts,
         jsonb_agg(jsonb_build_object('intent', i.intent_id, 'kind', i.kind, 'account', i.account_id)
                   order by i.created_at, i.intent_id) as members,
         min(i.rail) as rail,
         max(i.created_at) as occurred_at
    from touched t
    join tallyd.intent_fact i on i.scope = t.scope and i.idempotency_key = t.idempotency_key
   group by t.scope, t.idempotency_key
  having count(distinct i.kind) > 1
      or count(distinct i.account_id) > 1
), torn as (
  select c.operation_id, c.scope, c.rail, c.charge_id, c.conflict, c.created_at,
         (select array_agg(distinct m ->> 'intent') from jsonb_array_elements(c.conflict) as m) as intents
    from tallyd.charge_fact c
   where c.operation_id = any (:'operations'::text[])
     and c.conflict is not null
)
select 'key:' || scope || ':' || idempotency_key as subject,
       operation_id,
       null::text as severity,
       case when kinds > 1 then 'kinds' else 'accounts' end as basis,
       rail,
       scope,
       intents,
       '{}'::text[] as charges,
       null::numeric as amount_at_risk,
       null::text as currency,
       occurred_at,
       format('Key %s stands on %s rows of different %s', idempotency_key, array_length(intents, 1),
              case when kinds > 1 then 'kinds of call' else 'accounts' end) as summary,
       null::text as advice,
       jsonb_build_object('key', idempotency_key, 'rows', members) as evidence,
       null::jsonb as look
  from shared
union all
select 'marks:' || scope || ':' || charge_id,
       operation_id,
       null,
       'marks',
       rail,
       scope,
       intents,
       array[charge_id],
       null,
       null,
       created_at,
       format('The marks of %s point to different rows', charge_id),
       'Decide which row the charge belongs to and correct the other mark: metadata, key or stored charge id.',
       jsonb_build_object('charge', charge_id, 'marks', conflict),
       null
  from torn
 order by subject
