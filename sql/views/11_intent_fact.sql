-- One row per existing row of the team's table, with its operation.
create view tallyd.intent_fact as
select i.intent_id,
       i.account_id,
       i.rail,
       i.scope,
       i.kind,
       -- Captures and refunds are calls about a charge and not charges of their own.
       lower(i.kind) not in ('capture', 'refund', 'cancel') as pays,
       i.amount,
       i.currency,
       i.idempotency_key,
       i.state,
       i.charge_id,
       i.response_kind,
       i.fingerprint,
       i.fingerprint_fit,
       i.reference,
       i.payment_id,
       i.customer,
       i.payer,
       i.payee,
       i.asset,
       i.nonce,
       i.valid_before,
       i.challenge_nonce,
       i.challenge_memo,
       i.repeat_confirmed,
       i.recorded_as,
       i.recorded_seen_at,
       i.created_at,
       i.updated_at,
       i.first_seen_at,
       i.seen_at,
       m.operation_id
  from tallyd.intent i
  left join tallyd.intent_match m on m.intent_id = i.intent_id
 where i.vanished_at is null;
