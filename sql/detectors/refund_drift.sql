--! title: A refund is not what it seems
--! severity: critical
--! needs: charges
--! advice: Look at the refund at the provider: a failed refund must be repeated another way, and money that went back twice must be asked for.
--
-- A refund that failed after it was made, more money returned than was taken (refunds and lost disputes), the
-- local table's refunds against the provider's, and refunds that stay pending (cases B29, B30).
with touched as (
  select c.scope, c.charge_id, c.operation_id, c.rail, c.currency, c.intent_id, c.amount_captured,
         c.amount_returned, c.dispute_lost, c.net, c.created_at
    from tallyd.charge_fact c
   where c.operation_id = any (:'operations'::text[])
     and c.captured
     and c.owned <> 'no'
     -- A row on its way names the operation; until then it would be told under another name.
     and (c.intent_id is not null or c.created_at + :'orphan_grace'::interval <= :'as_of'::timestamptz)
), failed as (
  select t.operation_id, t.scope, t.rail, t.currency, t.intent_id, t.charge_id, 'refund_failed' as basis,
         null::text as severity, sum(r.amount) as amount, max(r.version_at) as occurred_at,
         format('A refund of %s failed: the money did not go back', t.charge_id) as summary,
         jsonb_build_object('charge', t.charge_id, 'refunds', jsonb_agg(jsonb_build_object(
           'id', r.refund_id, 'amount', r.amount::text, 'status', r.status, 'reason', r.failure_reason)
           order by r.refund_id)) as evidence
    from touched t
    join tallyd.refund_fact r on r.scope = t.scope and r.charge_id = t.charge_id
   where r.status = 'failed'
     -- Repeated with success later: nothing is missing any more.
     and t.net > 0
   group by t.operation_id, t.scope, t.rail, t.currency, t.intent_id, t.charge_id
), returned_twice as (
  select t.operation_id, t.scope, t.rail, t.currency, t.intent_id, t.charge_id, 'over_returned' as basis,
         null::text as severity, t.amount_returned + t.dispute_lost - t.amount_captured as amount,
         t.created_at as occurred_at,
         format('%s of %s was returned for %s', t.amount_returned + t.dispute_lost, t.amount_captured,
                t.charge_id) as summary,
         jsonb_build_object('charge', t.charge_id, 'captured', t.amount_captured::text,
                            'refunded', t.amount_returned::text, 'lost', t.dispute_lost::text) as evidence
    from touched t
   where t.amount_returned + t.dispute_lost > t.amount_captured
     and t.amount_captured > 0
), local_refunds as (
  select i.operation_id, sum(i.amount) as amount, array_agg(i.intent_id order by i.intent_id) as intents,
         max(i.updated_at) as occurred_at
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and lower(i.kind) = 'refund'
     and i.state = 'recorded'
     and i.updated_at + :'orphan_grace'::interval <= :'as_of'::timestamptz
   group by i.operation_id
), booked as (
  select l.operation_id, min(t.scope) as scope, min(t.rail) as rail, min(t.currency) as currency,
         l.intents[1] as intent_id, min(t.charge_id) as charge_id, 'local_total' as basis, null::text as severity,
         abs(l.amount - sum(t.amount_returned)) as amount, l.occurred_at,
         format('The local table says %s refunded, the provider %s', l.amount, sum(t.amount_returned)) as summary,
         jsonb_build_object('local', l.amount::text, 'provider', sum(t.amount_returned)::text,
                            'rows', to_jsonb(l.intents)) as evidence
    from local_refunds l
    join touched t using (operation_id)
   group by l.operation_id, l.amount, l.intents, l.occurred_at
  having l.amount <> sum(t.amount_returned)
), waiting as (
  select t.operation_id, t.scope, t.rail, t.currency, t.intent_id, t.charge_id, 'refund_pending' as basis,
         'info' as severity, sum(r.amount) as amount, min(r.created_at) as occurred_at,
         format('A refund of %s is pending since %s', t.charge_id, min(r.created_at)::date) as summary,
         jsonb_build_object('charge', t.charge_id, 'refunds', jsonb_agg(r.refund_id order by r.refund_id)) as evidence
    from touched t
    join tallyd.refund_fact r on r.scope = t.scope and r.charge_id = t.charge_id
   where r.status = 'pending'
     -- Banks answer within three working days.
     and r.created_at + interval '3 days' <= :'as_of'::timestamptz
   group by t.operation_id, t.scope, t.rail, t.currency, t.intent_id, t.charge_id
), found as (
  select operation_id, scope, rail, currency, intent_id, charge_id, basis, severity, amount, occurred_at,
         summary, evidence
    from failed
  union all
  select operation_id, scope, rail, currency, intent_id, charge_id, basis, severity, amount, occurred_at,
         summary, evidence
    from returned_twice
  union all
  select operation_id, scope, rail, currency, intent_id, charge_id, basis, severity, amount, occurred_at,
         summary, evidence
    from booked
  union all
  select operation_id, scope, rail, currency, intent_id, charge_id, basis, severity, amount, occurred_at,
         summary, evidence
    from waiting
)
select operation_id as subject, operation_id, severity, basis, rail, scope,
       case when intent_id is null then '{}' else array[intent_id] end as intents,
       array[charge_id] as charges, amount as amount_at_risk, currency, occurred_at, summary,
       null::text as advice, evidence, null::jsonb as look
  from found
 order by subject, charge_id, basis
