-- An ambiguous row as the mirror has it.
select i.intent_id,
       i.account_id,
       i.scope,
       i.operation_id,
       i.amount,
       i.currency,
       i.idempotency_key,
       i.state,
       i.charge_id,
       i.fingerprint,
       i.reference,
       i.payee,
       i.asset,
       i.payer,
       i.nonce,
       i.valid_before,
       i.repeat_confirmed,
       i.created_at,
       i.updated_at
  from tallyd.intent_fact i
 where i.intent_id = :'intent'
   and i.pays
