-- The reference names the operation, not the row. Only where one operation has exactly one row without a
-- charge and exactly one charge without a row are the two each other's (case B04); with more of either
-- nobody can say which row it was, and the extra charges stay without one (case B02).
with rows_free as (
  select i.operation_id, min(i.intent_id) as intent_id
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.pays
     and i.charge_id is null
     and not exists (
           select
             from tallyd.charge_match m
            where m.intent_id = i.intent_id
              and m.basis <> 'reference'
         )
   group by i.operation_id
  having count(*) = 1
), charges_free as (
  select m.operation_id, min(m.scope) as scope, min(m.charge_id) as charge_id
    from tallyd.charge_match m
    join tallyd.charge c using (scope, charge_id)
   where m.operation_id = any (:'operations'::text[])
     and (m.intent_id is null or m.basis = 'reference')
     and c.status in ('succeeded', 'pending')
   group by m.operation_id
  having count(*) = 1
), pairs as (
  select c.scope, c.charge_id, r.intent_id
    from rows_free r
    join charges_free c using (operation_id)
    join tallyd.intent_fact i on i.intent_id = r.intent_id and i.scope = c.scope
)
update tallyd.charge_match m
   set intent_id = p.intent_id,
       basis = case when p.intent_id is not null then 'reference' end
  from tallyd.charge_match o
  left join pairs p using (scope, charge_id)
 where o.operation_id = any (:'operations'::text[])
   and (o.intent_id is null or o.basis = 'reference')
   and m.scope = o.scope
   and m.charge_id = o.charge_id
   and m.intent_id is distinct from p.intent_id
