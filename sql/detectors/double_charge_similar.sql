--! code: double_charge
--! title: Charges that look like one purchase paid more than once
--! severity: warning
--! needs: charges
--! advice: Compare the purchases. If they are one, refund all but the oldest; if they are not, close the incident and give each purchase a reference, which rules the likeness out.
--
-- Similar charges of different operations: the same payer, payee, amount, currency and purpose inside a
-- short window, or equal fingerprints inside the duplicate window (keys made by sql/match/liken.sql). Different
-- references win over any likeness. A burst is one group, found again under its first charge while it grows (case B05).
with touched as (
  select m.scope, k.sort, k.likeness, min(c.created_at) as since, max(c.created_at) as until
    from tallyd.charge_match m
    join tallyd.charge c on c.scope = m.scope and c.charge_id = m.charge_id
   cross join lateral (values ('alike', m.alike_key), ('fingerprint', m.print_key)) as k (sort, likeness)
   where m.operation_id = any (:'operations'::text[])
     and k.likeness is not null
     and c.status = 'succeeded'
   group by m.scope, k.sort, k.likeness
), near as (
  select t.scope, t.sort, t.likeness, m.charge_id, t.since, t.until
    from touched t
    join tallyd.charge_match m on m.alike_key = t.likeness and m.scope = t.scope
   where t.sort = 'alike'
  union all
  select t.scope, t.sort, t.likeness, m.charge_id, t.since, t.until
    from touched t
    join tallyd.charge_match m on m.print_key = t.likeness and m.scope = t.scope
   where t.sort = 'fingerprint'
), crowded as (
  -- Most charges are like no other: they end here.
  select n.scope, n.sort, n.likeness, n.charge_id
    from (
           select scope, sort, likeness, charge_id, since, until,
                  count(*) over (partition by scope, sort, likeness) as members
             from near
         ) n
    join tallyd.charge c on c.scope = n.scope and c.charge_id = n.charge_id
   where n.members > 1
     and c.status = 'succeeded'
     and c.created_at between n.since - :'duplicate_window'::interval
                          and n.until + :'duplicate_window'::interval
), paid as (
  select c.scope, c.charge_id, c.operation_id, c.rail, c.payment_intent, c.amount, c.amount_captured, c.net,
         c.currency, c.created_at, c.position, c.intent_id, coalesce(c.payer, i.customer, c.instrument) as payer,
         coalesce(c.reference, i.reference, i.payment_id) as reference, n.sort, n.likeness,
         case n.sort when 'alike' then :'similar_window'::interval
                     else :'duplicate_window'::interval end as gap_max
    from crowded n
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
), likenesses as (
  select a.scope, a.charge_id, a.operation_id, a.rail, a.payment_intent, a.amount, a.amount_captured, a.net,
         a.currency, a.created_at, a.position, a.intent_id, a.payer, a.reference, a.sort, a.gap_max, a.likeness,
         -- Purchases with names of their own are different purchases: only the nameless stay.
         count(*) filter (where a.reference is not null) over l as named,
         min(a.reference) over l as first_reference,
         max(a.reference) over l as last_reference
    from paid a
  window l as (partition by a.scope, a.sort, a.likeness)
), steps as (
  select l.scope, l.charge_id, l.operation_id, l.rail, l.payment_intent, l.amount, l.amount_captured, l.net,
         l.currency, l.created_at, l.position, l.intent_id, l.payer, l.sort, l.likeness,
         l.created_at - lag(l.created_at) over w > l.gap_max as breaks
    from likenesses l
   where named = 0
      or first_reference = last_reference
      or reference is null
  window w as (partition by l.scope, l.sort, l.likeness order by l.created_at, l.position, l.charge_id)
), islands as (
  select s.scope, s.charge_id, s.operation_id, s.rail, s.payment_intent, s.amount, s.amount_captured, s.net,
         s.currency, s.created_at, s.position, s.intent_id, s.payer, s.sort, s.likeness,
         count(*) filter (where s.breaks) over (partition by s.scope, s.sort, s.likeness
                                                order by s.created_at, s.position, s.charge_id) as island
    from steps s
), groups as (
  select p.scope, p.sort, p.likeness, p.island,
         array_agg(p.charge_id order by p.created_at, p.position, p.charge_id) as charges,
         array_agg(distinct p.intent_id) filter (where p.intent_id is not null) as intents,
         (array_agg(p.operation_id order by p.created_at, p.position, p.charge_id))[1] as operation_id,
         (array_agg(p.charge_id order by p.created_at, p.position, p.charge_id))[1] as keeper,
         (array_agg(p.amount_captured order by p.created_at, p.position, p.charge_id))[1] as kept,
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
         ) order by p.created_at, p.position, p.charge_id) as members
    from islands p
   group by p.scope, p.sort, p.likeness, p.island
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
