-- The operations that an id names: an intent, a charge, a payment intent, a refund, a dispute, an
-- idempotency key, a reference, an event, an incident or an operation. An id may be several of them.
with recursive charge_scopes as (
  -- One step per scope along the key: the ids below are only indexed within their scope.
  (select c.scope
     from tallyd.charge c
    order by c.scope
    limit 1)
  union all
  select (select c.scope
            from tallyd.charge c
           where c.scope > s.scope
           order by c.scope
           limit 1)
    from charge_scopes s
   where s.scope is not null
), scopes as (
  select scope
    from charge_scopes
   where scope is not null
  union
  select scope
    from tallyd.source
  union
  select scope
    from unnest(:'scopes'::text[]) as configured (scope)
), objects as (
  select c.scope, c.charge_id as id
    from scopes
    join tallyd.charge c using (scope)
   where c.charge_id = :'id'
  union
  select c.scope, c.charge_id
    from tallyd.charge c
   where c.payment_intent = :'id'
  union
  select c.scope, c.charge_id
    from tallyd.charge c
   where c.key_mark = :'id'
  union
  select c.scope, c.charge_id
    from tallyd.charge c
   where c.reference = :'id'
  union
  select c.scope, c.charge_id
    from tallyd.charge c
   where c.intent_mark = :'id'
  union
  select c.scope, c.charge_id
    from tallyd.charge c
   where c.nonce = :'id'
  union
  select k.scope, k.object_id
    from tallyd.object_key k
   where k.idempotency_key = :'id'
  union
  select p.scope, p.id
    from scopes
    join tallyd.stripe_payment_intent p using (scope)
   where p.id = :'id'
  union
  select r.scope, coalesce(r.charge_id, r.payment_intent)
    from scopes
    join tallyd.refund r using (scope)
   where r.refund_id = :'id'
  union
  select m.scope, m.charge_id
    from scopes
    join tallyd.refund_match m using (scope)
   where m.refund_id = :'id'
  union
  select d.scope, coalesce(d.charge_id, d.payment_intent)
    from scopes
    join tallyd.dispute d using (scope)
   where d.dispute_id = :'id'
  union
  select b.scope, coalesce(r.charge_id, r.payment_intent, d.charge_id, d.payment_intent, b.object_id)
    from scopes
    join tallyd.inbox b using (scope)
    left join tallyd.refund r on r.scope = b.scope and r.refund_id = b.object_id
    left join tallyd.dispute d on d.scope = b.scope and d.dispute_id = b.object_id
   where b.event_id = :'id'
), charges as (
  select c.scope, c.charge_id
    from objects o
    join tallyd.charge c on c.scope = o.scope and c.charge_id = o.id
  union
  select c.scope, c.charge_id
    from objects o
    join tallyd.charge c on c.scope = o.scope and c.payment_intent = o.id
), intents as (
  select i.intent_id
    from tallyd.intent i
   where i.intent_id = :'id'
  union
  select i.intent_id
    from tallyd.intent i
   where i.idempotency_key = :'id'
  union
  select i.intent_id
    from tallyd.intent i
   where i.reference = :'id'
  union
  select i.intent_id
    from tallyd.intent i
   where i.charge_id = :'id'
  union
  select i.intent_id
    from tallyd.intent i
   where i.payment_id = :'id'
  union
  select i.intent_id
    from tallyd.intent i
   where i.nonce = :'id'
  union
  -- A payment intent without a charge has no place of its own; the rows that it marks do.
  select l.intent_id
    from objects o
    join tallyd.intent_payment l on l.scope = o.scope and l.payment_intent = o.id
), operations as (
  select m.operation_id
    from charges c
    join tallyd.charge_match m using (scope, charge_id)
  union
  select m.operation_id
    from intents i
    join tallyd.intent_match m using (intent_id)
  union
  select m.operation_id
    from tallyd.intent_match m
   where m.operation_id = :'id'
  union
  select m.operation_id
    from tallyd.charge_match m
   where m.operation_id = :'id'
  union
  select i.operation_id
    from tallyd.incident i
   where i.id = :'id'
     and i.operation_id is not null
)
select operation_id
  from operations
 order by operation_id
 limit :'limit'
