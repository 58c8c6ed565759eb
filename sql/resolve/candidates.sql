-- Rows that the resolver has to look at (README.md, what it settles by itself). A row in flight counts past its
-- limit, or,
-- when its own success or final failure is already known, as soon as no call of its holder can be
-- under way any more. Rows that may be retried count when a charge of their own has turned up.
with asked as (
  select i.intent_id, i.state, i.updated_at
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.pays
     and i.state in ('key_minted', 'in_flight', 'failed_retryable', 'reconciling')
  union
  select i.intent_id, i.state, i.updated_at
    from tallyd.intent_fact i
   where :'sweep'::boolean
     and i.pays
     and (i.state = 'reconciling'
          or i.state = 'in_flight' and i.updated_at <= :'attempts_over'::timestamptz)
  union
  -- Every row that may be retried would be too many to ask about at each beat: once alone does.
  select i.intent_id, i.state, i.updated_at
    from tallyd.charge_match m
    join tallyd.intent_fact i on i.intent_id = m.intent_id
   where :'everything'::boolean
     and i.pays
     and i.state in ('key_minted', 'failed_retryable')
), candidates as (
  select a.intent_id, a.state, a.updated_at
    from asked a
   where a.state = 'reconciling'
      or a.state = 'in_flight'
         and (a.updated_at <= :'stuck_before'::timestamptz
              or a.updated_at <= :'attempts_over'::timestamptz
                 and (exists (
                        select
                          from tallyd.charge_match m
                          join tallyd.charge c using (scope, charge_id)
                         where m.intent_id = a.intent_id
                           and c.status in ('succeeded', 'failed')
                      )
                      or exists (
                        select
                          from tallyd.intent_payment l
                          join tallyd.stripe_payment_intent p
                            on p.scope = l.scope and p.id = l.payment_intent
                         where l.intent_id = a.intent_id
                           and p.status in ('succeeded', 'canceled')
                      )))
      or a.state in ('key_minted', 'failed_retryable')
         and exists (
               select
                 from tallyd.charge_match m
                 join tallyd.charge_fact c using (scope, charge_id)
                where m.intent_id = a.intent_id
                  and c.succeeded
             )
)
insert into tallyd.ladder as l (intent_id, state, since, rung, next_at)
select intent_id, state, updated_at, 0, :'now'::timestamptz
  from candidates
    on conflict (intent_id) do update
   set state = excluded.state,
       since = excluded.since,
       -- A changed row is a new question; a new fact about the same row is one more look at it.
       rung = case when (l.state, l.since) = (excluded.state, excluded.since) then l.rung else 0 end,
       next_at = excluded.next_at,
       -- An ended ladder that is woken stays ended until the look says otherwise: else its incident would
       -- close and open again.
       ended_at = case when (l.state, l.since) = (excluded.state, excluded.since) then l.ended_at end,
       missing = case when (l.state, l.since) = (excluded.state, excluded.since) then l.missing end
 where (l.state, l.since) <> (excluded.state, excluded.since)
    or :'awake'::boolean and l.next_at > excluded.next_at
