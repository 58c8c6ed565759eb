-- Other rows with the same key or payment id that mean something else. A hash that differs while the
-- meaning is the same is the writer's spelling and no rival (case B11).
with own as (
  select i.account_id, i.scope, i.kind, i.idempotency_key, i.payment_id, i.amount, i.currency, i.payee
    from tallyd.intent_fact i
   where i.intent_id = :'intent'
), others as (
  select o.intent_id, 'key' as mark, o.account_id, o.scope, o.kind, o.amount, o.currency, o.payee
    from own
    join tallyd.intent_fact o on o.idempotency_key = own.idempotency_key
  union all
  select o.intent_id, 'payment_id', o.account_id, o.scope, o.kind, o.amount, o.currency, o.payee
    from own
    join tallyd.intent_fact o on o.payment_id = own.payment_id
)
select o.intent_id, o.mark, o.amount, o.currency, o.payee
  from others o
  join own using (account_id, scope, kind)
 where o.intent_id <> :'intent'
   and (o.amount <> own.amount
        or o.currency <> own.currency
        or lower(o.payee) <> lower(own.payee))
 order by o.mark, o.intent_id
 limit :'limit'
