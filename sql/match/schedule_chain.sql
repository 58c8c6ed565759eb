-- Absence on chain waits for blocks and not for the clock: operations whose moment lies in the time that has
-- just been read to its end are judged now.
with moments as (
  select m.operation_id
    from tallyd.charge c
    join tallyd.charge_match m using (scope, charge_id)
   where c.scope = :'scope'
     and m.intent_id is null
     and c.created_at > :'from'::timestamptz - :'orphan_grace'::interval
     and c.created_at <= :'to'::timestamptz - :'orphan_grace'::interval
  union
  select m.operation_id
    from tallyd.intent_fact i
    join tallyd.intent_match m using (intent_id)
   where i.scope = :'scope'
     and i.state = 'recorded'
     and greatest(i.updated_at, i.created_at) > :'from'::timestamptz - :'orphan_grace'::interval
     and greatest(i.updated_at, i.created_at) <= :'to'::timestamptz - :'orphan_grace'::interval
     -- A payment that a reorganisation took away is there no more.
     and not exists (
           select
             from tallyd.charge_match c
             join tallyd.charge p using (scope, charge_id)
            where c.intent_id = i.intent_id
              and p.status in ('succeeded', 'pending')
         )
)
insert into tallyd.due (operation_id, due_at)
select operation_id, :'now'::timestamptz
  from moments
    on conflict do nothing
