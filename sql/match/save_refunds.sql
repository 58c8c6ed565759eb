-- Stores which charge each transfer back settles. Answers the operations whose money changed.
with wanted as (
  select scope, refund_id, charge_id, basis
    from unnest(:'scopes'::text[], :'refund_ids'::text[], :'charge_ids'::text[], :'bases'::text[])
         as w (scope, refund_id, charge_id, basis)
), seen as (
  select scope, refund_id
    from unnest(:'seen_scopes'::text[], :'seen_ids'::text[]) as s (scope, refund_id)
), before as (
  select m.scope, m.refund_id, m.charge_id
    from tallyd.refund_match m
    join seen using (scope, refund_id)
), lost as (
  delete from tallyd.refund_match m
   using seen s
   where m.scope = s.scope
     and m.refund_id = s.refund_id
     and not exists (
           select
             from wanted w
            where w.scope = m.scope
              and w.refund_id = m.refund_id
         )
), placed as (
  insert into tallyd.refund_match as m (scope, refund_id, charge_id, basis)
  select scope, refund_id, charge_id, basis
    from wanted
      on conflict (scope, refund_id) do update
     set charge_id = excluded.charge_id,
         basis = excluded.basis
   where (m.charge_id, m.basis) is distinct from (excluded.charge_id, excluded.basis)
), moved as (
  select scope, refund_id, charge_id from before
  except
  select scope, refund_id, charge_id from wanted
  union all
  (select scope, refund_id, charge_id from wanted
   except
   select scope, refund_id, charge_id from before)
)
select distinct m.operation_id
  from moved
  join tallyd.charge_match m using (scope, charge_id)
