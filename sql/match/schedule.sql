-- When the touched operations have to be judged: now, and again when a limit that depends on time
-- runs out. A missed moment is harmless, since judging late gives the same verdict.
with operations as (
  select distinct operation_id
    from unnest(:'operations'::text[]) as o (operation_id)
), moments as (
  select operation_id, :'now'::timestamptz as due_at
    from operations
  union
  -- A charge without a row is an orphan only after the grace period.
  select operation_id, c.created_at + :'orphan_grace'::interval
    from operations
    join tallyd.charge_match m using (operation_id)
    join tallyd.charge c using (scope, charge_id)
   where m.intent_id is null
  union
  -- A row that is still open gets stuck, first a warning, then critical.
  select operation_id, i.updated_at + :'in_flight_limit'::interval * factor
    from operations
    join tallyd.intent_fact i using (operation_id)
   cross join unnest(array[1, 6]) as factor
   where i.state in ('in_flight', 'reconciling')
  union
  select operation_id, i.created_at + :'retry_horizon'::interval
    from operations
    join tallyd.intent_fact i using (operation_id)
   where i.state in ('key_minted', 'failed_retryable')
  union
  -- A recorded row without a charge in the mirror may be ahead of its webhook.
  select operation_id, i.updated_at + :'orphan_grace'::interval
    from operations
    join tallyd.intent_fact i using (operation_id)
   where i.state = 'recorded'
     and not exists (select from tallyd.charge_match m where m.intent_id = i.intent_id)
  union
  -- A payment intent that is not final yet.
  select operation_id, i.updated_at + wait
    from operations
    join tallyd.intent_fact i using (operation_id)
    join tallyd.intent_payment l on l.intent_id = i.intent_id
    join tallyd.stripe_payment_intent p on p.scope = l.scope and p.id = l.payment_intent
   cross join unnest(array[:'orphan_grace'::interval, :'in_flight_limit'::interval,
                          :'async_limit'::interval]) as wait
   where p.status not in ('succeeded', 'canceled')
)
insert into tallyd.due (operation_id, due_at)
select operation_id, due_at
  from moments
 where due_at >= :'now'::timestamptz
    on conflict do nothing
