--! title: The local state and the provider disagree
--! severity: critical
--! needs: local, charges
--! advice: The provider's truth wins. Correct the row by hand after you have looked at both; a row that says failed invites a retry that would pay twice.
--
-- Failed but charged, recorded but failed or canceled, recorded but unknown to the provider. Rows that the resolver
-- settles by itself are left to it; rows that it never writes are told at once.
with touched as (
  select i.intent_id, i.operation_id, i.scope, i.rail, i.state, i.amount, i.currency, i.charge_id,
         i.response_kind, i.updated_at
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.pays
), paid as (
  select t.intent_id,
         count(*) as successes,
         sum(c.net) as net,
         array_agg(c.charge_id order by c.created_at, c.charge_id) as charges,
         min(c.created_at) as first_at,
         min(c.currency) as currency,
         bool_or(c.refund_locked) as refund_locked,
         bool_and(c.amount_captured = t.amount and c.currency = t.currency) as agrees
    from touched t
    join tallyd.charge_fact c on c.intent_id = t.intent_id
   where c.succeeded
   group by t.intent_id
), siblings as (
  select operation_id, count(*) filter (where net > 0) as successes
    from tallyd.charge_fact
   where operation_id = any (:'operations'::text[])
     and succeeded
   group by operation_id
), payments as (
  select t.intent_id,
         array_agg(distinct p.id) as ids,
         bool_or(p.status = 'requires_capture') as capturable,
         bool_and(p.status in ('canceled', 'requires_payment_method')) as dead,
         bool_or(p.status in ('requires_action', 'requires_confirmation')) as waiting,
         bool_or(p.status = 'processing' or p.asynchronous) as asynchronous,
         string_agg(distinct p.status, ', ') as statuses
    from touched t
    join tallyd.intent_payment l on l.intent_id = t.intent_id
    join tallyd.stripe_payment_intent p on p.scope = l.scope and p.id = l.payment_intent
   group by t.intent_id
), verdicts as (
  select t.intent_id, r.outcome
    from touched t
   cross join lateral (
           select r.outcome
             from tallyd.resolution r
            where r.intent_id = t.intent_id
            order by r.resolution_id desc
            limit 1
         ) r
), failed_but_paid as (
  select t.intent_id, t.operation_id, t.scope, t.rail, p.charges, p.net, p.currency, p.first_at as occurred_at,
         null::text as severity, 'failed_but_paid' as basis, null::jsonb as look,
         format('%s is %s, but %s succeeded', t.intent_id, t.state, p.charges[1]) as summary,
         case
           when p.refund_locked then 'A dispute is open on the charge: answer it, do not refund.'
           else format('Set the row to recorded with %s, or refund what is left of the charge (%s %s in minor '
                       'units).',
                       p.charges[1], p.net, upper(p.currency))
         end as advice,
         jsonb_build_object('localState', t.state, 'shouldBe', 'recorded', 'charge', p.charges[1],
                            'refundable', p.net::text) as evidence
    from touched t
    join paid p using (intent_id)
    left join siblings s using (operation_id)
    left join verdicts v using (intent_id)
   where p.net > 0
     and case
           when t.state = 'failed_terminal' then true
           -- Two successes in the operation: the resolver holds, so the row's own money must be told.
           when t.state in ('failed_retryable', 'key_minted')
           then :'resolve_mode'::text <> 'write' or s.successes > 1 or v.outcome = 'refused'
           when t.state = 'reconciling'
             or (t.state = 'in_flight' and t.updated_at + :'in_flight_limit'::interval <= :'as_of'::timestamptz)
           then (:'resolve_mode'::text <> 'write' or v.outcome = 'refused') and s.successes = 1 and p.agrees
           else false
         end
), failed_but_held as (
  select t.intent_id, t.operation_id, t.scope, t.rail, '{}'::text[] as charges, null::numeric as net, t.currency,
         t.updated_at as occurred_at, 'warning' as severity, 'failed_but_held' as basis, null::jsonb as look,
         format('%s is %s, but the provider still holds the money (%s)', t.intent_id, t.state, y.statuses) as summary,
         'Cancel the payment intent at the provider: it is authorised and not captured, so there is nothing to '
         'refund.' as advice,
         jsonb_build_object('localState', t.state, 'paymentIntents', to_jsonb(y.ids), 'statuses',
                y.statuses) as evidence
    from touched t
    join payments y using (intent_id)
   where t.state = 'failed_terminal'
     and y.capturable
     -- The cancellation may be on its way.
     and t.updated_at + :'orphan_grace'::interval <= :'as_of'::timestamptz
     and not exists (select from paid p where p.intent_id = t.intent_id)
), recorded_but_failed as (
  select t.intent_id, t.operation_id, t.scope, t.rail, '{}'::text[] as charges, t.amount as net, t.currency,
         t.updated_at as occurred_at, 'warning' as severity, 'recorded_but_failed' as basis, null::jsonb as look,
         format('%s is recorded, but the provider says %s', t.intent_id, y.statuses) as summary,
         'Nothing was paid for this row: stop the delivery or ask for payment again under a new intent.' as advice,
         jsonb_build_object('localState', t.state, 'paymentIntents', to_jsonb(y.ids), 'statuses',
                y.statuses) as evidence
    from touched t
    join payments y using (intent_id)
   where t.state = 'recorded'
     and not exists (select from paid p where p.intent_id = t.intent_id)
     and case
           when y.dead then t.updated_at + :'orphan_grace'::interval <= :'as_of'::timestamptz
           when y.asynchronous then t.updated_at + :'async_limit'::interval <= :'as_of'::timestamptz
           when y.waiting then t.updated_at + :'in_flight_limit'::interval <= :'as_of'::timestamptz
           else false
         end
), recorded_but_charge_failed as (
  -- The row names a failed attempt and its payment intent is not known in a final state.
  select t.intent_id, t.operation_id, t.scope, t.rail, array[c.charge_id] as charges, t.amount as net, t.currency,
         t.updated_at as occurred_at, 'warning' as severity, 'recorded_but_failed' as basis, null::jsonb as look,
         format('%s is recorded with %s, which failed', t.intent_id, c.charge_id) as summary,
         'Nothing was paid for this row: stop the delivery or ask for payment again under a new intent.' as advice,
         jsonb_build_object('localState', t.state, 'charge', c.charge_id, 'status', c.status) as evidence
    from touched t
    join tallyd.charge c on c.scope = t.scope and c.charge_id = t.charge_id
   where t.state = 'recorded'
     and t.rail = 'stripe'
     and c.status = 'failed'
     and t.updated_at + :'orphan_grace'::interval <= :'as_of'::timestamptz
     and not exists (select from paid p where p.intent_id = t.intent_id)
     and not exists (select from payments y where y.intent_id = t.intent_id)
), never_existed as (
  -- Nothing of it is in the mirror. The judge asks the provider for the id right before this is spoken.
  select t.intent_id, t.operation_id, t.scope, t.rail, array[t.charge_id] as charges, t.amount as net, t.currency,
         t.updated_at as occurred_at, 'warning' as severity, 'never_existed' as basis,
         jsonb_build_object('source', 'stripe', 'scope', t.scope, 'id', t.charge_id) as look,
         format('%s is recorded with %s, which the provider does not know', t.intent_id, t.charge_id) as summary,
         'Check account and mode first. If they are right, nothing was paid for this row.' as advice,
         jsonb_build_object('localState', t.state, 'charge', t.charge_id) as evidence
    from touched t
   where t.state = 'recorded'
     and t.rail = 'stripe'
     and t.charge_id ~ '^(pi|ch|py)_'
     and t.updated_at + :'orphan_grace'::interval <= :'as_of'::timestamptz
     and not exists (select from tallyd.charge_match m where m.intent_id = t.intent_id)
     and not exists (select from payments y where y.intent_id = t.intent_id)
     -- Known to the mirror, but placed with another row: duplicate_charge_id tells it.
     and not exists (
           select
             from tallyd.charge c
            where c.scope = t.scope
              and t.charge_id in (c.charge_id, c.payment_intent)
         )
), found as (
  select intent_id, operation_id, scope, rail, charges, net, currency, occurred_at, severity, basis, look,
         summary, advice, evidence
    from failed_but_paid
  union all
  select intent_id, operation_id, scope, rail, charges, net, currency, occurred_at, severity, basis, look,
         summary, advice, evidence
    from failed_but_held
  union all
  select intent_id, operation_id, scope, rail, charges, net, currency, occurred_at, severity, basis, look,
         summary, advice, evidence
    from recorded_but_failed
  union all
  select intent_id, operation_id, scope, rail, charges, net, currency, occurred_at, severity, basis, look,
         summary, advice, evidence
    from recorded_but_charge_failed
  union all
  select intent_id, operation_id, scope, rail, charges, net, currency, occurred_at, severity, basis, look,
         summary, advice, evidence
    from never_existed
)
select operation_id as subject, operation_id, severity, basis, rail, scope, array[intent_id] as intents,
       charges, net as amount_at_risk, currency, occurred_at, summary, advice, evidence, look
  from found
 order by subject, intent_id
