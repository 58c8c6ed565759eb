-- Which intents the marks of a charge point to, strongest rule first (src/README.md, matching). Always inside
-- the scope. The reference is no mark of an intent but of an operation: the match step handles it. Of two
-- intents of one rule the lower preference wins.
create view tallyd.charge_candidate as
select c.scope, c.charge_id, 1 as rule, 'charge_id' as basis, i.intent_id, i.created_at, 0 as preference
  from tallyd.charge c
  join tallyd.intent_fact i on i.charge_id = c.charge_id and i.scope = c.scope and i.pays
 where c.rail = 'stripe'
union all
select c.scope, c.charge_id, 1, 'charge_id', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.intent_fact i on i.charge_id = c.payment_intent and i.scope = c.scope and i.pays
 where c.rail = 'stripe'
union all
-- One payment intent has many attempts, and a row that noted a failed one means the one that succeeded
-- too (case B07), unless another row names that one itself.
select c.scope, c.charge_id, 1, 'charge_id', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.charge s on s.scope = c.scope and s.payment_intent = c.payment_intent
  join tallyd.intent_fact i on i.charge_id = s.charge_id and i.scope = c.scope and i.pays
 where c.rail = 'stripe'
   and s.charge_id <> c.charge_id
   and not exists (
         select
           from tallyd.intent_fact o
          where o.scope = c.scope
            and o.charge_id in (c.charge_id, c.payment_intent)
            and o.pays
       )
union all
select c.scope, c.charge_id, 2, 'key', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.object_key k on k.scope = c.scope and k.object_id = c.charge_id
  join tallyd.intent_fact i on i.idempotency_key = k.idempotency_key and i.scope = c.scope and i.pays
union all
select c.scope, c.charge_id, 2, 'key', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.object_key k on k.scope = c.scope and k.object_id = c.payment_intent
  join tallyd.intent_fact i on i.idempotency_key = k.idempotency_key and i.scope = c.scope and i.pays
union all
select c.scope, c.charge_id, 2, 'key', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.intent_fact i on i.idempotency_key = c.key_mark and i.scope = c.scope and i.pays
union all
select c.scope, c.charge_id, 2, 'key', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
  join tallyd.intent_fact i on i.idempotency_key = p.key_mark and i.scope = c.scope and i.pays
union all
select c.scope, c.charge_id, 3, 'metadata', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.intent_fact i on i.intent_id = c.intent_mark and i.scope = c.scope and i.pays
union all
select c.scope, c.charge_id, 3, 'metadata', i.intent_id, i.created_at, 0
  from tallyd.charge c
  join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
  join tallyd.intent_fact i on i.intent_id = p.intent_mark and i.scope = c.scope and i.pays
union all
select c.scope, c.charge_id, c.rule, c.basis, c.intent_id, c.created_at, c.preference
  from tallyd.chain_candidate c;
