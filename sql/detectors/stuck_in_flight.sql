--! title: A payment was started and never finished
--! severity: warning
--! needs: local, charges
--! advice: Find the worker that held this row. Look the payment up at the provider before anything is sent again; a retry is safe only with the same key and inside its replay window.
--
-- In flight longer than its limit, and the provider shows no success that the resolver could record.
-- Methods that settle days later have a limit of their own.
with open_rows as (
  select i.intent_id, i.operation_id, i.account_id, i.scope, i.rail, i.amount, i.currency, i.idempotency_key,
         i.created_at, i.updated_at, :'as_of'::timestamptz - i.updated_at as age
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.state = 'in_flight'
     and i.updated_at + :'in_flight_limit'::interval <= :'as_of'::timestamptz
), provider as (
  select o.intent_id,
         jsonb_agg(jsonb_build_object('id', p.id, 'status', p.status) order by p.created_at) as objects,
         bool_or(p.status = 'processing' or p.asynchronous) as asynchronous
    from open_rows o
    join tallyd.intent_payment l on l.intent_id = o.intent_id
    join tallyd.stripe_payment_intent p on p.scope = l.scope and p.id = l.payment_intent
   group by o.intent_id
)
select o.operation_id as subject,
       o.operation_id,
       case when o.age > :'in_flight_limit'::interval * 6 then 'critical' end as severity,
       null::text as basis,
       o.rail,
       o.scope,
       array[o.intent_id] as intents,
       '{}'::text[] as charges,
       o.amount as amount_at_risk,
       o.currency,
       o.updated_at as occurred_at,
       format('%s has been in flight for %s, %s', o.intent_id,
              date_trunc('second', o.age),
              case when p.objects is null then 'no provider object found'
                   else 'not final at the provider' end) as summary,
       null::text as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'intent', o.intent_id, 'since', o.updated_at, 'key', o.idempotency_key,
         'keyStillProtects', o.created_at + :'retry_horizon'::interval > :'as_of'::timestamptz,
         'providerObjects', p.objects, 'providerAnswer',
         case when p.objects is null then 'no provider object found' end)) as evidence,
       null::jsonb as look
  from open_rows o
  left join provider p using (intent_id)
  left join tallyd.ladder l on l.intent_id = o.intent_id and l.state = 'in_flight'
 where (not coalesce(p.asynchronous, false)
        or o.updated_at + :'async_limit'::interval <= :'as_of'::timestamptz)
   -- A success of its own is the resolver's to record, or state_drift's to tell.
   and not exists (
         select
           from tallyd.charge_fact c
          where c.intent_id = o.intent_id
            and c.succeeded
       )
   -- A purchase paid twice by charges that no row owns is a double charge and told as one.
   and (select count(*)
          from tallyd.charge_fact c
         where c.operation_id = o.operation_id
           and c.intent_id is null
           and c.succeeded
           and c.net > 0) < 2
   -- The resolver looks first: what it settles by itself is no incident (README.md, what it settles by itself).
   and (:'resolve_mode'::text = 'off'
        or l.rung > 0
        or l.ended_at is not null
        or o.updated_at + :'in_flight_limit'::interval * 2 <= :'as_of'::timestamptz)
 order by subject
