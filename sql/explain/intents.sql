-- The rows of some operations, oldest first, and where each stands on its ladder.
select i.intent_id, i.account_id, i.rail, i.scope, i.kind, i.amount, i.currency, i.idempotency_key,
       i.state, i.raw_state, i.charge_id, i.response_kind, i.fingerprint, i.reference, i.payment_id,
       i.customer, i.payer, i.payee, i.asset, i.nonce, i.valid_before, i.created_at, i.updated_at,
       i.vanished_at, m.operation_id,
       l.rung, l.next_at, l.ended_at, l.missing
  from tallyd.intent_match m
  join tallyd.intent i using (intent_id)
  left join tallyd.ladder l on l.intent_id = i.intent_id and l.state = i.state
 where m.operation_id = any (:'operations'::text[])
 order by i.created_at, i.intent_id
 limit :'limit'
