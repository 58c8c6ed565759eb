--! code: double_charge
--! title: Charges that look like one purchase paid more than once
--! severity: warning
--! needs: charges
--! advice: Compare the purchases. If they are one, refund all but the oldest; if they are not, close the incident and give each purchase a reference, which rules the likeness out.
--
-- Similar charges of different operations: the same payer, payee, amount, currency and purpose inside a
-- short window, or equal fingerprints inside the duplicate window. Different references win over
-- any likeness. A burst is one group, found again under its first charge while it grows (case B05).
with touched as (
  select c.scope, c.amount, c.currency, min(c.created_at) as since, max(c.created_at) as until
    from tallyd.charge_fact c
   where c.operation_id = any (:'operations'::text[])
     and c.succeeded
   group by c.scope, c.amount, c.currency
), near as (
  select distinct n.scope, n.charge_id
    from touched t
    join tallyd.charge n
      on n.scope = t.scope
     and n.amount = t.amount
     and n.currency = t.currency
     and n.created_at between t.since - :'duplicate_window'::interval
                          and t.until + :'duplicate_window'::interval
   where n.status = 'succeeded'
), paid as (
  select c.scope, c.charge_id, c.operation_id, c.rail, c.payment_intent, c.amount, c.amount_captured, c.net,
         c.currency, c.created_at, c.intent_id, c.payee, c.purpose,
         coalesce(c.payer, i.customer, c.instrument) as payer,
         coalesce(c.reference, i.reference, i.payment_id) as reference,
         i.fingerprint, i.account_id
    from near
    join tallyd.charge_fact c using (scope, charge_id)
    left join tallyd.intent i on i.intent_id = c.intent_id
   where c.succeeded
     and c.net > 0
     and c.owned <> 'no'
     and c.operation_id is not null
     and not coalesce(i.repeat_confirmed, false)
     -- A row on its way may still name the purchase, and another name ends the likeness.
     and (c.intent_id is not null or c.created_at + :'orphan_grace'::interval <= :'as_of'::timestamptz)
     -- Payees with metered small payments repeat honestly.
     and not exists (
           select
             from jsonb_to_recordset(:'allow_repeats'::jsonb) as a (payee text, max_amount numeric)
            where lower(a.payee) = lower(c.payee)
              and c.amount <= a.max_amount
         )
), alike as (
  select p.scope, p.charge_id, 'alike' as sort, :'similar_window'::interval as gap_max,
         jsonb_build_array(p.payer, p.payee, p.amount::text, p.currency, p.purpose) as likeness
    from paid p
   where p.payer is not null
  union all
  select p.scope, p.charge_id, 'fingerprint', :'duplicate_window'::interval,
         jsonb_build_array(p.account_id, p.fingerprint, p.amount::text, p.currency)
    from paid p
   where p.fingerprint is not null
), likenesses as (
  select a.scope, a.sort, a.likeness, a.gap_max, p.charge_id, p.created_at, p.reference,
         -- Purchases with names of their own are different purchases: only the nameless stay.
         count(*) filter (where p.reference is not null) over l as named,
         min(p.reference) over l as first_reference,
         max(p.reference) over l as last_reference
    from alike a
    join paid p using (scope, charge_id)
  window l as (partition by a.scope, a.sort, a.likeness)
), steps as (
  select scope, sort, likeness, charge_id, created_at,
         created_at - lag(created_at) over w > gap_max as breaks
    from likenesses
   where named = 0
      or first_reference = last_reference
      or reference is null
  window w as (partition by scope, sort, likeness order by created_at, charge_id)
), islands as (
  select scope, sort, likeness, charge_id, created_at,
         count(*) filter (where breaks) over (partition by scope, sort, likeness
                                              order by created_at, charge_id) as island
    from steps
), groups as (
  select i.scope, i.sort, i.likeness, i.island,
         array_agg(p.charge_id order by p.created_at, p.charge_id) as charges,
         array_agg(distinct p.intent_id) filter (where p.intent_id is not null) as intents,
         (array_agg(p.operation_id order by p.created_at, p.charge_id))[1] as operation_id,
         (array_agg(p.charge_id order by p.created_at, p.charge_id))[1] as keeper,
         (array_agg(p.amount_captured order by p.created_at, p.charge_id))[1] as kept,
         min(p.rail) as rail,
         min(p.currency) as currency,
         min(p.payer) as payer,
         sum(p.net) as net,
         count(*) as charges_count,
         count(*) filter (where p.intent_id is null) as without_rows,
         min(p.created_at) as first_at,
         max(p.created_at) as last_at,
         jsonb_agg(jsonb_build_object(
           'id', p.charge_id, 'paymentIntent', p.payment_intent, 'amount', p.amount::text, 'net', p.net::text,
           'currency', p.currency, 'createdAt', p.created_at, 'intent', p.intent_id,
           'keeper', false, 'reason', case when p.intent_id is null then 'no local row' end
         ) order by p.created_at, p.charge_id) as members
    from islands i
    join paid p using (scope, charge_id)
   group by i.scope, i.sort, i.likeness, i.island
  -- Charges of one operation are the proven detector's.
  having count(distinct p.operation_id) > 1
     -- What settles in one transaction on chain was collected on purpose (case B36).
     and count(distinct case when p.rail = 'evm' then p.payment_intent else p.charge_id end) > 1
)
select 'similar:' || scope || ':' || keeper as subject,
       operation_id,
       -- A burst is no coincidence any more: severity rises with the count.
       case when charges_count >= 5 then 'critical' end as severity,
       'similar' as basis,
       rail,
       scope,
       coalesce(intents, '{}') as intents,
       charges,
       net - kept as amount_at_risk,
       currency,
       first_at as occurred_at,
       format('%s alike charges within %s s%s', charges_count,
              extract(epoch from last_at - first_at)::bigint,
              case when without_rows = charges_count then ', none with a local row' else '' end) as summary,
       null::text as advice,
       jsonb_build_object(
         'keeper', keeper, 'count', charges_count, 'withoutRows', without_rows, 'payer', payer,
         'gapSeconds', extract(epoch from last_at - first_at)::bigint,
         'firstCharge', keeper, 'lastCharge', charges[array_upper(charges, 1)],
         'likeness', sort, 'charges', members) as evidence,
       null::jsonb as look
  from groups
 where net > kept
 order by subject
