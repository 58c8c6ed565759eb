-- The rows that own any of the charges by a mark of their own.
select distinct m.intent_id
  from unnest(:'scopes'::text[], :'charge_ids'::text[]) as w (scope, charge_id)
  join tallyd.charge_match m using (scope, charge_id)
 where m.intent_id is not null
   and m.basis <> 'reference'
