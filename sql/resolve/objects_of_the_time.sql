-- Payments that were made in the time of the attempts, and whether a mark tells whose they are. The
-- connected account's copies and objects of somebody else are not ours to tell apart. A key counts where
-- the row has one, and only when a writer made it: keys that an SDK invents name an attempt.
with payments as (
  select p.id, p.intent_mark, p.key_mark, p.owned, null::text as other_id
    from tallyd.stripe_payment_intent p
   where p.scope = :'scope'
     and p.created_at >= :'from'::timestamptz
     and p.created_at < :'to'::timestamptz
), charges as (
  select c.charge_id as id,
         coalesce(c.intent_mark, p.intent_mark) as intent_mark,
         coalesce(c.key_mark, p.key_mark) as key_mark,
         case
           when 'yes' in (c.owned, p.owned) then 'yes'
           when 'no' in (c.owned, p.owned)  then 'no'
           else 'unknown'
         end as owned,
         c.payment_intent as other_id
    from tallyd.charge c
    left join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
   where c.scope = :'scope'
     and c.created_at >= :'from'::timestamptz
     and c.created_at < :'to'::timestamptz
     and c.source_transfer is null
), objects as (
  select id, intent_mark, key_mark, owned, other_id
    from payments
  union all
  select id, intent_mark, key_mark, owned, other_id
    from charges
), judged as (
  select o.id,
         o.intent_mark is not null as with_metadata,
         :'key'::text is not null
         and (o.key_mark is not null
              or exists (
                   select
                     from tallyd.object_key k
                    where k.scope = :'scope'
                      and k.object_id in (o.id, o.other_id)
                      and k.idempotency_key not like 'stripe-node-retry-%'
                 )) as with_key
    from objects o
   where o.owned <> 'no'
), sample as (
  select id
    from judged
   where not with_metadata
     and not with_key
   order by id
   limit :'limit'
)
select count(*) as owned,
       count(*) filter (where with_metadata) as with_metadata,
       count(*) filter (where with_key) as with_key,
       count(*) filter (where not with_metadata and not with_key) as unmarked,
       (select coalesce(array_agg(id order by id), '{}') from sample) as sample
  from judged
