select c.charge_id, c.scope, c.rail, c.payment_intent, c.status, c.succeeded, c.amount, c.amount_captured,
       c.amount_returned, c.net, c.currency, c.captured, c.disputed, c.mirrored, c.payer,
       c.payee, c.asset, c.nonce, c.reference, c.owned, c.operation_id, c.intent_id, c.basis, c.conflict, c.created_at
  from tallyd.charge_fact c
 where c.operation_id = any (:'operations'::text[])
 order by c.created_at, c.position, c.charge_id
 limit :'limit'
