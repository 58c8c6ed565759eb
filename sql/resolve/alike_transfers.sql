-- Final transfers that no row owns and that look like a row's: its payer, payee, token and amount, in the time
-- in which it can have been paid. A likeness and no proof. A payee must be named, since amounts repeat.
select c.charge_id, c.payment_intent, c.status, c.succeeded, c.captured, c.mirrored, c.amount, c.amount_captured,
       c.net, c.currency, c.payee, c.asset, null::text as failure_code, 'likeness' as basis, false as torn,
       c.created_at
  from tallyd.intent_fact i
  join tallyd.charge_fact c
    on c.scope = i.scope
   and c.amount = i.amount
   and c.currency = i.currency
   and c.created_at >= i.created_at - :'slack'::interval
   and c.created_at < greatest(i.updated_at, coalesce(i.valid_before, i.updated_at)) + :'window'::interval
 where i.intent_id = :'intent'
   and c.rail = 'evm'
   and c.succeeded
   and c.net > 0
   and c.intent_id is null
   and c.payee = i.payee
   and (i.payer is null or i.payer !~ '^0x' or c.payer = i.payer)
   and (i.asset is null or c.asset = i.asset)
   and (i.nonce is null or c.nonce is null)
 order by c.created_at, c.position, c.charge_id
 limit :'limit'
