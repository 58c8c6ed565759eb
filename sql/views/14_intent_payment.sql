-- The Stripe payment intents that the marks of an intent point to, with or without a charge yet.
create view tallyd.intent_payment as
select i.intent_id, p.scope, p.id as payment_intent, 'charge_id' as basis
  from tallyd.intent_fact i
  join tallyd.stripe_payment_intent p on p.scope = i.scope and p.id = i.charge_id
 where i.pays
union
select i.intent_id, p.scope, p.id, 'charge_id'
  from tallyd.intent_fact i
  join tallyd.charge c on c.scope = i.scope and c.charge_id = i.charge_id
  join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
 where i.pays
union
select i.intent_id, p.scope, p.id, 'key'
  from tallyd.intent_fact i
  join tallyd.object_key k on k.idempotency_key = i.idempotency_key and k.scope = i.scope
  join tallyd.stripe_payment_intent p on p.scope = k.scope and p.id = k.object_id
 where i.pays
union
select i.intent_id, p.scope, p.id, 'metadata'
  from tallyd.intent_fact i
  join tallyd.stripe_payment_intent p on p.intent_mark = i.intent_id and p.scope = i.scope
 where i.pays
union
-- What the order number alone ties to a row: the match step has settled that they are each other's.
select m.intent_id, p.scope, p.id, 'reference'
  from tallyd.charge_match m
  join tallyd.charge c using (scope, charge_id)
  join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
 where m.basis = 'reference'
   and m.intent_id is not null;
