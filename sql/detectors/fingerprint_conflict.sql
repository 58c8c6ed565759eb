--! title: One key or payment id stands for different purchases
--! severity: critical
--! needs: local
--! advice: Find the code that changed amount, currency, account or payee after the key was minted. Do not retry with this key; a new purchase needs a new row and a new key.
--
-- Only a difference in meaning counts (amount, currency, payee, asset): a hash that differs while the meaning
-- is the same is the writer's spelling (case B11).
with touched as (
  select i.intent_id, i.operation_id, i.account_id, i.scope, i.rail, i.kind, i.idempotency_key, i.payment_id,
         i.amount, i.currency, i.payee, i.asset, i.fingerprint, i.fingerprint_fit, i.recorded_as,
         i.updated_at, i.state
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
), shared as (
  select 'key' as mark, t.account_id, t.scope, t.kind, t.idempotency_key as value
    from touched t
   where t.idempotency_key is not null
  union
  select 'payment_id', t.account_id, t.scope, t.kind, t.payment_id
    from touched t
   where t.payment_id is not null
), members as (
  select s.mark, s.account_id, s.scope, s.kind, s.value, i.intent_id, i.operation_id, i.rail, i.amount,
         i.currency, i.payee, i.asset, i.created_at, i.updated_at
    from shared s
    join tallyd.intent_fact i
      on s.mark = 'key'
     and i.idempotency_key = s.value
     and i.account_id = s.account_id
     and i.scope = s.scope
     and i.kind = s.kind
  union all
  select s.mark, s.account_id, s.scope, s.kind, s.value, i.intent_id, i.operation_id, i.rail, i.amount,
         i.currency, i.payee, i.asset, i.created_at, i.updated_at
    from shared s
    join tallyd.intent_fact i
      on s.mark = 'payment_id'
     and i.payment_id = s.value
     and i.account_id = s.account_id
     and i.scope = s.scope
     and i.kind = s.kind
), reused as (
  select mark || ':' || account_id || ':' || value as subject,
         (array_agg(operation_id order by created_at, intent_id))[1] as operation_id,
         mark as basis, min(rail) as rail, scope,
         array_agg(intent_id order by created_at, intent_id) as intents,
         max(amount) as amount_at_risk, min(currency) as currency, max(updated_at) as occurred_at,
         format('%s %s stands for different purchases', mark, value) as summary,
         jsonb_build_object('mark', mark, 'value', value, 'rows', jsonb_agg(jsonb_build_object(
           'intent', intent_id, 'amount', amount::text, 'currency', currency, 'payee', payee, 'asset', asset)
           order by created_at, intent_id)) as evidence
    from members
   group by mark, account_id, scope, kind, value
  having count(*) > 1
     and count(distinct (amount, currency, payee, asset)) > 1
), changed as (
  -- A material field differs from what the row said when it was first seen recorded.
  select t.operation_id || ':' || t.intent_id as subject, t.operation_id, 'row_changed' as basis, t.rail, t.scope,
         array[t.intent_id] as intents, greatest(t.amount, (t.recorded_as ->> 'amount')::numeric) as amount_at_risk,
         t.currency, t.updated_at as occurred_at,
         format('%s was changed after it was recorded', t.intent_id) as summary,
         jsonb_build_object('intent', t.intent_id, 'recorded', t.recorded_as, 'now', jsonb_build_object(
           'amount', t.amount::text, 'currency', t.currency, 'payee', t.payee)) as evidence
    from touched t
   where t.recorded_as is not null
     and ((t.recorded_as ->> 'amount')::numeric <> t.amount
          or t.recorded_as ->> 'currency' <> t.currency
          or t.recorded_as ->> 'account_id' <> t.account_id
          or t.recorded_as ->> 'payee' <> t.payee)
), practice as (
  -- The writer's way of hashing is known once any row's fingerprint can be reproduced.
  select exists (select from tallyd.intent where fingerprint_fit is not null) as known
), disagreeing as (
  -- Reproducing the fingerprint with the charged amount proves that the row was changed, not the hash.
  select t.operation_id || ':' || t.intent_id as subject, t.operation_id, 'fingerprint' as basis, t.rail, t.scope,
         array[t.intent_id] as intents, t.amount as amount_at_risk, t.currency, t.updated_at as occurred_at,
         format('The stored fingerprint of %s does not belong to its row', t.intent_id) as summary,
         jsonb_strip_nulls(jsonb_build_object('intent', t.intent_id, 'fingerprint', t.fingerprint,
           'amount', t.amount::text, 'currency', t.currency, 'fitsAmount', charged.amount::text)) as evidence
    from touched t
   cross join practice
    left join lateral (
           select c.amount
             from tallyd.charge_fact c
            where c.intent_id = t.intent_id
              and t.fingerprint in (
                    encode(sha256(convert_to(format('{"amount": %s, "currency": %s, "intent_id": %s}', c.amount,
                      to_json(c.currency), to_json(t.intent_id)), 'UTF8')), 'hex'),
                    encode(sha256(convert_to(format('{"amount":%s,"currency":%s,"intent_id":%s}', c.amount,
                      to_json(c.currency), to_json(t.intent_id)), 'UTF8')), 'hex'))
            limit 1
         ) charged on true
   where t.fingerprint ~ '^[0-9a-f]{64}$'
     and t.fingerprint_fit is null
     and (practice.known or charged.amount is not null)
)
select subject, operation_id, null::text as severity, basis, rail, scope, intents, '{}'::text[] as charges,
       amount_at_risk, currency, occurred_at, summary, null::text as advice, evidence, null::jsonb as look
  from (
         select subject, operation_id, basis, rail, scope, intents, amount_at_risk, currency, occurred_at,
                summary, evidence
           from reused
         union all
         select subject, operation_id, basis, rail, scope, intents, amount_at_risk, currency, occurred_at,
                summary, evidence
           from changed
         union all
         select subject, operation_id, basis, rail, scope, intents, amount_at_risk, currency, occurred_at,
                summary, evidence
           from disagreeing
       ) found
 order by subject
