-- Idempotency keys that two or more successes of the operation share (case B09).
with paid as (
  select c.scope, c.charge_id, c.payment_intent, c.key_mark
    from tallyd.charge_fact c
   where c.operation_id = :'operation'
     and c.succeeded
     and c.net > 0
), keys as (
  select p.charge_id, k.idempotency_key
    from paid p
    join tallyd.object_key k on k.scope = p.scope and k.object_id in (p.charge_id, p.payment_intent)
  union
  select p.charge_id, p.key_mark
    from paid p
   where p.key_mark is not null
)
select idempotency_key
  from keys
 group by idempotency_key
having count(distinct charge_id) > 1
 order by idempotency_key
 limit :'limit'
