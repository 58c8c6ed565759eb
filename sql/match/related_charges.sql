-- Charges whose place may change because of the changed objects: the charges themselves, those of a
-- changed payment intent, and those that a mark ties to a changed intent, then or now.
with intents as (
  select i.intent_id, i.scope, i.charge_id, i.idempotency_key, i.reference, i.nonce,
         i.challenge_nonce, i.challenge_memo
    from tallyd.intent i
   where i.intent_id = any (:'intents'::text[])
), seeds as (
  select c.scope, c.charge_id
    from unnest(:'charge_scopes'::text[], :'charge_ids'::text[]) as s (scope, charge_id)
    join tallyd.charge c using (scope, charge_id)
  union
  select c.scope, c.charge_id
    from unnest(:'payment_scopes'::text[], :'payment_ids'::text[]) as s (scope, id)
    join tallyd.charge c on c.payment_intent = s.id and c.scope = s.scope
  union
  select m.scope, m.charge_id
    from tallyd.charge_match m
   where m.intent_id = any (:'intents'::text[])
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.charge c on c.charge_id = i.charge_id and c.scope = i.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.charge c on c.payment_intent = i.charge_id and c.scope = i.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.charge c on c.intent_mark = i.intent_id and c.scope = i.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.charge c on c.key_mark = i.idempotency_key and c.scope = i.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.charge c on c.nonce in (i.nonce, i.challenge_nonce) and c.scope = i.scope
  union
  select t.scope, t.scope || ':' || t.tx_hash || ':' || t.log_index
    from intents i
    join tallyd.evm_transfer t
      on left(t.memo, 32) || right(t.memo, 14) = i.challenge_memo
     and t.scope = i.scope
     and t.role = 'charge'
     and t.memo is not null
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.charge c on c.reference = i.reference
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.object_key k on k.idempotency_key = i.idempotency_key and k.scope = i.scope
    join tallyd.charge c on c.charge_id = k.object_id and c.scope = k.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.object_key k on k.idempotency_key = i.idempotency_key and k.scope = i.scope
    join tallyd.charge c on c.payment_intent = k.object_id and c.scope = k.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.stripe_payment_intent p on p.intent_mark = i.intent_id and p.scope = i.scope
    join tallyd.charge c on c.payment_intent = p.id and c.scope = p.scope
  union
  select c.scope, c.charge_id
    from intents i
    join tallyd.stripe_payment_intent p on p.reference = i.reference
    join tallyd.charge c on c.payment_intent = p.id and c.scope = p.scope
)
select scope, charge_id
  from seeds
union
-- A row that names one attempt of a payment intent may stand for its other attempts (case B07), and rows
-- that name a transaction on chain share its transfers among them (case B36).
select o.scope, o.charge_id
  from seeds s
  join tallyd.charge c using (scope, charge_id)
  join tallyd.charge o on o.scope = c.scope and o.payment_intent = c.payment_intent
