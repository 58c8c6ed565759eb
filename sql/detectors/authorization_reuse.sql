--! title: One signed authorization stands for different purchases
--! severity: warning
--! needs: local
--! advice: One signature moves money once. Find which purchase it paid for, ask for payment of the other under an authorization of its own, and have the server refuse a nonce that it has seen before.
--
-- The same (payer, nonce) on rows that mean different purchases: other payment identifiers, references or
-- material parameters, or two rows that both count as paid. Rows of one purchase that repeat the nonce are
-- the same payment sent again, which is how a retry should look.
with touched as (
  select distinct i.scope, i.nonce
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.rail = 'evm'
     and i.pays
     and i.nonce is not null
), rows_of as (
  select t.scope, t.nonce, i.payer, i.intent_id, i.operation_id, i.state, i.payment_id, i.reference, i.amount,
         i.currency, i.asset, i.payee, i.created_at,
         min(i.payer) over n as first_payer,
         max(i.payer) over n as last_payer
    from touched t
    join tallyd.intent_fact i on i.scope = t.scope and i.nonce = t.nonce and i.pays
  window n as (partition by t.scope, t.nonce)
), members as (
  -- A row that names no payer belongs to the only one that the others name.
  select scope, nonce, coalesce(payer, case when first_payer = last_payer then first_payer end, '') as payer,
         intent_id, operation_id, state, payment_id, reference, amount, currency, asset, payee, created_at
    from rows_of
), groups as (
  select scope, nonce, payer,
         array_agg(intent_id order by created_at, intent_id) as intents,
         (array_agg(operation_id order by created_at, intent_id))[1] as operation_id,
         count(distinct payment_id) as payment_ids,
         count(distinct reference) as order_numbers,
         count(distinct (amount, currency, coalesce(asset, ''), coalesce(payee, ''))) as meanings,
         count(*) filter (where state = 'recorded') as recorded,
         sum(amount) - max(amount) as beyond,
         min(currency) as currency,
         max(created_at) as occurred_at,
         jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
           'intent', intent_id, 'state', state, 'paymentId', payment_id, 'reference', reference,
           'amount', amount::text, 'currency', currency, 'payee', payee)) order by created_at, intent_id) as members
    from members
   group by scope, nonce, payer
  having count(*) > 1
)
select 'authorization:' || scope || ':' || payer || ':' || nonce as subject,
       operation_id,
       null::text as severity,
       case
         when payment_ids > 1 then 'payment_id'
         when order_numbers > 1 then 'reference'
         when meanings > 1 then 'parameters'
         else 'recorded'
       end as basis,
       'evm' as rail,
       scope,
       intents,
       array(select c.charge_id
               from tallyd.charge c
              where c.scope = groups.scope
                and c.nonce = groups.nonce
                and groups.payer in (c.payer, '')
                and c.status = 'succeeded'
              order by c.charge_id) as charges,
       beyond as amount_at_risk,
       currency,
       occurred_at,
       format('Authorization %s was presented for %s purchases', nonce, array_length(intents, 1)) as summary,
       null::text as advice,
       jsonb_strip_nulls(jsonb_build_object('nonce', nonce, 'payer', nullif(payer, ''), 'rows', members)) as evidence,
       null::jsonb as look
  from groups
 where payment_ids > 1
    or order_numbers > 1
    or meanings > 1
    or recorded > 1
 order by subject
