-- Successes of the operation that are not the row's own and of which something is left. Somebody
-- else's money does not count, nor does a second purchase that a person confirmed.
select c.scope,
       c.charge_id,
       c.intent_id,
       c.net,
       c.currency,
       c.created_at
  from tallyd.charge_fact c
  left join tallyd.intent i on i.intent_id = c.intent_id
 where c.operation_id = :'operation'
   and c.succeeded
   and c.net > 0
   and c.owned <> 'no'
   and c.intent_id is distinct from :'intent'
   and not coalesce(i.repeat_confirmed, false)
 order by c.created_at, c.position, c.charge_id
 limit :'limit'
