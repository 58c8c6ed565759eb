-- Objects that carry a mark of the row, in any scope: one in another account is no absence either. The
-- reference names the order and not the row, so it counts only where no other row owns the object.
with marked as (
  select l.payment_intent as id
    from tallyd.intent_payment l
   where l.intent_id = :'intent'
  union
  select m.charge_id
    from tallyd.charge_match m
   where m.intent_id = :'intent'
  union
  select c.charge_id
    from tallyd.charge c
   where c.intent_mark = :'intent'
  union
  select p.id
    from tallyd.stripe_payment_intent p
   where p.intent_mark = :'intent'
  union
  select c.charge_id
    from tallyd.charge c
   where c.key_mark = :'key'
  union
  select k.object_id
    from tallyd.object_key k
   where k.idempotency_key = :'key'
     -- Refunds and disputes are calls about a charge.
     and k.object_id ~ '^(pi|ch|py)_'
  union
  select c.charge_id
    from tallyd.charge c
   where :'charge' in (c.charge_id, c.payment_intent)
     and c.scope = :'scope'
  union
  select p.id
    from tallyd.stripe_payment_intent p
   where p.scope = :'scope'
     and p.id = :'charge'
  union
  select c.charge_id
    from tallyd.charge c
    join tallyd.charge_match m using (scope, charge_id)
   where c.reference = :'reference'
     and c.scope = :'scope'
     and (m.intent_id is null or m.basis = 'reference')
     and c.status <> 'failed'
  union
  select p.id
    from tallyd.stripe_payment_intent p
   where p.scope = :'scope'
     and p.created_at >= :'from'::timestamptz
     and p.created_at < :'to'::timestamptz
     and (p.key_mark = :'key'
          or p.reference = :'reference'
             and p.intent_mark is null
             and not exists (
                   select
                     from tallyd.intent_payment l
                    where l.scope = p.scope
                      and l.payment_intent = p.id
                 ))
)
select id
  from marked
 where id is not null
 order by id
 limit :'limit'
