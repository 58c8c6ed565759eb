--! title: Nobody can prove whether a payment happened
--! severity: critical
--! needs: local, charges
--! advice: Look at what is missing below: give the reader what it lacks (coverage, a key, a mark on the payments), or settle the row by hand from the provider's dashboard. Do not mint a new intent before that.
--
-- Reconciling, and the ladder of look-ups has ended without proof of success, failure or absence.
select i.operation_id as subject,
       i.operation_id,
       null::text as severity,
       null::text as basis,
       i.rail,
       i.scope,
       array[i.intent_id] as intents,
       '{}'::text[] as charges,
       i.amount as amount_at_risk,
       i.currency,
       i.updated_at as occurred_at,
       format('%s is reconciling since %s and nothing can be proven', i.intent_id,
              to_char(i.updated_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')) as summary,
       null::text as advice,
       jsonb_build_object('intent', i.intent_id, 'since', i.updated_at, 'looks', l.rung,
                          'endedAt', l.ended_at, 'missing', l.missing) as evidence,
       null::jsonb as look
  from tallyd.intent_fact i
  join tallyd.ladder l on l.intent_id = i.intent_id and l.state = 'reconciling'
 where i.operation_id = any (:'operations'::text[])
   and i.state = 'reconciling'
   and l.ended_at is not null
   -- Two successes are a double charge and told as one.
   and not exists (
         select
           from tallyd.charge_fact c
          where c.intent_id = i.intent_id
            and c.succeeded
       )
   -- A purchase paid twice by charges that no row owns is a double charge and told as one.
   and (select count(*)
          from tallyd.charge_fact c
         where c.operation_id = i.operation_id
           and c.intent_id is null
           and c.succeeded
           and c.net > 0) < 2
 order by subject
