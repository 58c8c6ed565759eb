--! title: Several rows claim the same charge
--! severity: critical
--! needs: local
--! advice: This is a defect of the local table and no second charge: money moved once. Decide which row the charge belongs to and correct the others, they were not paid.
--
-- One provider charge on two or more rows, whatever spelling each of them uses (pi_ or ch_).
with touched as (
  select i.scope, i.charge_id
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.charge_id is not null
     and i.pays
     -- A transaction on chain may hold many transfers: duplicate_charge_id_chain.sql.
     and i.rail = 'stripe'
), spellings as (
  select t.scope, t.charge_id as spelling
    from touched t
  union
  select c.scope, c.payment_intent
    from touched t
    join tallyd.charge c on c.scope = t.scope and c.charge_id = t.charge_id
   where c.payment_intent is not null
  union
  select c.scope, c.charge_id
    from touched t
    join tallyd.charge c on c.scope = t.scope and c.payment_intent = t.charge_id
  union
  -- A sibling attempt of the same payment intent is another charge: only the successful one counts.
  select s.scope, s.charge_id
    from touched t
    join tallyd.charge c on c.scope = t.scope and c.charge_id = t.charge_id
    join tallyd.charge s on s.scope = c.scope and s.payment_intent = c.payment_intent
   where s.status = 'succeeded'
), claims as (
  select distinct i.scope, i.intent_id, i.operation_id, i.created_at, i.account_id, i.state,
         coalesce(c.payment_intent, i.charge_id) as identity
    from spellings s
    join tallyd.intent_fact i on i.scope = s.scope and i.charge_id = s.spelling and i.pays
    left join tallyd.charge c on c.scope = i.scope and c.charge_id = i.charge_id
), groups as (
  select scope, identity,
         array_agg(intent_id order by created_at, intent_id) as intents,
         (array_agg(operation_id order by created_at, intent_id))[1] as operation_id,
         count(*) as rows_count,
         max(created_at) as occurred_at
    from claims
   group by scope, identity
  having count(*) > 1
)
select 'charge:' || g.scope || ':' || g.identity as subject,
       g.operation_id,
       null::text as severity,
       'charge_id' as basis,
       'stripe' as rail,
       g.scope,
       g.intents,
       array[coalesce(paid.charge_id, g.identity)] as charges,
       0::numeric as amount_at_risk,
       paid.currency,
       g.occurred_at,
       format('%s rows claim %s', g.rows_count, coalesce(paid.charge_id, g.identity)) as summary,
       null::text as advice,
       jsonb_build_object('charge', coalesce(paid.charge_id, g.identity), 'rows', to_jsonb(g.intents),
                          'excess', '0', 'note', 'money moved once') as evidence,
       null::jsonb as look
  from groups g
  left join lateral (
         select c.charge_id, c.currency
           from tallyd.charge c
          where c.scope = g.scope
            and g.identity in (c.payment_intent, c.charge_id)
          order by c.status = 'succeeded' desc, c.created_at
          limit 1
       ) paid on true
 order by subject
