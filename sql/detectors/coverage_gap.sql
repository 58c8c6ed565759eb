--! about: sources
--! title: A source cannot be seen completely
--! severity: critical
--! needs: sources
--! advice: Until this is over, nothing is said about payments that might be missing there. See the error, run tallyd doctor, and backfill the hole once the source answers.
--
-- If tallyd is blind, it says so (invariant 11): a source that fails again and again or has stood still,
-- events that are about to be deleted or were deleted before they were read, silent webhooks, events that could not be
-- read, and objects that their own provider denies.
with limits as (
  select source, beat
    from (values ('local', :'local_beat'::interval),
                 ('stripe.events', :'events_beat'::interval),
                 ('stripe.payment_intents', :'lists_beat'::interval),
                 ('stripe.charges', :'lists_beat'::interval),
                 ('evm.logs', :'chains_beat'::interval)) as l (source, beat)
), failing as (
  select 'source:' || s.source || ':' || s.scope as subject, s.scope, 'failing' as basis,
         s.failing_since as occurred_at,
         format('%s of %s cannot be read since %s', s.source, s.scope,
                to_char(s.failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')) as summary,
         jsonb_build_object('source', s.source, 'code', s.last_error_code, 'error', s.last_error,
                            'failures', s.failures, 'lastOkAt', s.last_ok_at) as evidence
    from tallyd.source s
   where s.failing_since is not null
     -- A refused key is a matter of configuration, told there.
     and s.last_error_code not in ('auth', 'permission', 'rights')
     -- One failure is weather, three in a row are not (case B26).
     and s.failures >= 3
), standing as (
  select 'source:' || s.source || ':' || s.scope as subject, s.scope, 'standing' as basis,
         s.last_ok_at as occurred_at,
         format('%s of %s was last read completely at %s', s.source, s.scope,
                to_char(s.last_ok_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')) as summary,
         jsonb_build_object('source', s.source, 'lastOkAt', s.last_ok_at) as evidence
    from tallyd.source s
    join limits l using (source)
   where s.failing_since is null
     -- Six beats without one that got through; short beats get an hour, a restart is no blindness.
     and s.last_ok_at + greatest(l.beat * 6, interval '1 hour') < :'as_of'::timestamptz
), cliff as (
  select 'cliff:' || s.scope as subject, s.scope, 'cliff' as basis, s.last_ok_at as occurred_at,
         format('Events of %s were last read at %s: Stripe deletes what came since from %s on', s.scope,
                to_char(s.last_ok_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
                to_char((s.last_ok_at + interval '30 days') at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')) as summary,
         jsonb_build_object('source', s.source, 'lastOkAt', s.last_ok_at,
                            'deletedFrom', s.last_ok_at + interval '30 days') as evidence
    from tallyd.source s
   where s.source = 'stripe.events'
     -- Five days are time enough to mend what keeps it from reading (case B25 c).
     and s.last_ok_at + interval '25 days' < :'as_of'::timestamptz
     and s.last_ok_at + interval '30 days' > :'as_of'::timestamptz
), holes as (
  select 'hole:' || s.scope || ':' || (h.value ->> 'from') as subject, s.scope, 'hole' as basis,
         (h.value ->> 'from')::timestamptz as occurred_at,
         format('Events of %s from %s to %s were deleted before they were read', s.scope,
                left(h.value ->> 'from', 16), left(h.value ->> 'to', 16)) as summary,
         jsonb_build_object('source', s.source, 'from', h.value ->> 'from', 'to', h.value ->> 'to') as evidence
    from tallyd.source s
   cross join lateral jsonb_array_elements(coalesce(s.cursor -> 'holes', '[]'::jsonb)) as h (value)
   where s.source = 'stripe.events'
     and h.value ->> 'filledAt' is null
), silent as (
  select 'webhooks:' || w.scope as subject, w.scope, 'webhooks_silent' as basis, w.since as occurred_at,
         format('No webhook arrived for %s events of %s since %s', w.missed, w.scope,
                to_char(w.since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')) as summary,
         jsonb_build_object('source', 'stripe.webhook', 'missed', w.missed, 'since', w.since) as evidence
    from tallyd.webhook_silence w
   where :'webhooks_expected'::boolean
), dead as (
  select 'dead:' || i.scope as subject, i.scope, 'dead_letters' as basis, min(i.received_at) as occurred_at,
         format('%s events of %s could not be read and were set aside', count(*), i.scope) as summary,
         jsonb_build_object('count', count(*), 'events', to_jsonb((array_agg(i.event_id order by i.event_id))[1:10]),
                            'error', max(i.last_error),
                            'unfetched', count(r.object_id),
                            'objects', to_jsonb((array_agg(distinct i.object_id)
                                                   filter (where r.object_id is not null))[1:10])) as evidence
    from tallyd.inbox i
    -- An object that was asked for by id as well, and given up.
    left join tallyd.refetch r
      on r.scope = i.scope
     and r.object_id = i.object_id
     and r.status = 'dead'
   where i.status = 'dead'
   group by i.scope
), denied_objects as (
  select p.scope, p.id, p.missing_since as since
    from tallyd.stripe_payment_intent p
   where p.missing_since is not null
  union all
  -- Other objects, and what is known by its name alone, unless they were seen after all (case B23).
  select r.scope, r.object_id, r.first_at
    from tallyd.refetch r
    left join (
           select scope, id, 'infinity'::timestamptz as seen_at
             from tallyd.stripe_payment_intent
           union all
           select scope, charge_id, seen_at
             from tallyd.charge
           union all
           select scope, refund_id, seen_at
             from tallyd.refund
           union all
           select scope, dispute_id, seen_at
             from tallyd.dispute
         ) o on o.scope = r.scope and o.id = r.object_id
   where r.status = 'missing'
     -- The event that told of it and asked for it is one commit, but its two times are of two clocks.
     and (o.seen_at is null or o.seen_at <= r.first_at + interval '1 minute')
), denied as (
  select 'missing:' || d.scope as subject, d.scope, 'denied' as basis, min(d.since) as occurred_at,
         format('%s objects of %s that events told of are denied by Stripe', count(*), d.scope) as summary,
         jsonb_build_object('objects', to_jsonb((array_agg(d.id order by d.id))[1:10]),
                            'check', 'account, mode and key') as evidence
    from denied_objects d
   group by d.scope
), found as (
  select subject, scope, basis, occurred_at, summary, evidence from failing
  union all
  select subject, scope, basis, occurred_at, summary, evidence from standing
  union all
  select subject, scope, basis, occurred_at, summary, evidence from cliff
  union all
  select subject, scope, basis, occurred_at, summary, evidence from holes
  union all
  select subject, scope, basis, occurred_at, summary, evidence from silent
  union all
  select subject, scope, basis, occurred_at, summary, evidence from dead
  union all
  select subject, scope, basis, occurred_at, summary, evidence from denied
)
select subject, null::text as operation_id, null::text as severity, basis,
       case when scope = 'local' then null when scope like 'eip155:%' then 'evm' else 'stripe' end as rail, scope,
       '{}'::text[] as intents, '{}'::text[] as charges, null::numeric as amount_at_risk,
       null::text as currency, occurred_at, summary,
       case basis
         when 'hole' then 'Run tallyd backfill over this range; the object lists still have what the events list '
                          'has lost.'
         when 'cliff' then 'Mend what keeps the events list from being read (tallyd doctor) before that day. Afterwards only '
                           'tallyd backfill can fill the hole, and it does not see what a list does not hold.'
         when 'webhooks_silent' then 'Check the endpoint in the Stripe dashboard: its address, its state, and '
                                     'redirects, which count as failures.'
         when 'dead_letters' then
           case when (evidence ->> 'unfetched')::bigint > 0
                then 'The objects in the evidence were read by id as well, and that could not be used either. Look '
                     'them up in the Stripe dashboard: nothing is concluded about them. When the error is gone (usually '
                     'an API version that a newer tallyd knows), resend the events there: they are read again.'
                else 'Look at the error. When its cause is gone, resend the events in the Stripe dashboard: they are '
                     'applied again. For those without a body, look up the payment there and close this incident.'
           end
         when 'denied' then 'Check that account, mode and key are those of the payments. Nothing is concluded '
                            'about them until Stripe answers.'
       end as advice,
       evidence, null::jsonb as look
  from found
 order by subject
