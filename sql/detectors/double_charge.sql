--! title: One purchase was charged more than once
--! severity: critical
--! needs: charges
--! advice: Keep the oldest charge and refund the excess at the provider. Then find the layer that retried: the gap between the charges usually equals its time-out.
--
-- Two or more successful charges of one operation, net of refunds, on any rails. Charges that a mark
-- ties together: the same key, the same intent, the same payment identifier or the same reference.
with paid as (
  select c.operation_id, c.scope, c.rail, c.charge_id, c.payment_intent, c.currency, c.amount,
         c.amount_captured, c.net, c.created_at, c.intent_id, c.key_mark, c.reference, c.refund_locked,
         coalesce(c.intent_id, c.intent_mark) as owner,
         row_number() over (partition by c.operation_id order by c.created_at, c.position, c.charge_id) as place
    from tallyd.charge_fact c
    left join tallyd.intent i on i.intent_id = c.intent_id
   where c.operation_id = any (:'operations'::text[])
     and c.succeeded
     and c.net > 0
     -- Somebody else's money on a shared account is counted elsewhere.
     and c.owned <> 'no'
     -- A person confirmed that this one was meant as a second purchase.
     and not coalesce(i.repeat_confirmed, false)
), keys as (
  select p.operation_id, p.charge_id, k.idempotency_key
    from paid p
    join tallyd.object_key k on k.scope = p.scope and k.object_id in (p.charge_id, p.payment_intent)
  union
  select p.operation_id, p.charge_id, p.key_mark
    from paid p
   where p.key_mark is not null
), shared_keys as (
  select operation_id, min(idempotency_key) as idempotency_key
    from (
           select operation_id, idempotency_key
             from keys
            group by operation_id, idempotency_key
           having count(distinct charge_id) > 1
         ) twice
   group by operation_id
), shared_owners as (
  select distinct operation_id
    from (
           select operation_id
             from paid
            where owner is not null
            group by operation_id, owner
           having count(*) > 1
         ) twice
), groups as (
  select p.operation_id,
         count(*) as charges_count,
         count(distinct p.currency) = 1 as one_currency,
         sum(p.net) - max(p.amount_captured) filter (where p.place = 1) as excess,
         sum(p.net) filter (where p.place > 1) as later_net,
         (array_agg(p.currency order by p.place desc))[1] as later_currency,
         (array_agg(p.net order by p.place desc))[1] as last_net,
         extract(epoch from max(p.created_at) - min(p.created_at))::bigint as span_seconds,
         min(p.created_at) filter (where p.place = 2) as occurred_at,
         max(p.charge_id) filter (where p.place = 1) as keeper,
         (array_agg(p.scope order by p.place))[1] as scope,
         (array_agg(p.rail order by p.place))[1] as rail,
         (array_agg(p.rail order by p.place desc))[1] as last_rail,
         max(p.reference) as reference,
         array_agg(p.charge_id order by p.place) as charges,
         array_agg(distinct p.intent_id) filter (where p.intent_id is not null) as intents,
         bool_or(p.refund_locked) filter (where p.place > 1) as refund_locked,
         jsonb_agg(jsonb_build_object(
           'id', p.charge_id, 'paymentIntent', p.payment_intent, 'scope', p.scope, 'amount', p.amount::text,
           'net', p.net::text, 'currency', p.currency, 'createdAt', p.created_at, 'intent', p.intent_id,
           'keeper', p.place = 1, 'reason', case when p.intent_id is null then 'no local row' end
         ) order by p.place) as members
    from paid p
   group by p.operation_id
  having count(*) > 1
), rows_of as (
  select operation_id, array_agg(intent_id order by created_at, intent_id) as intents
    from tallyd.intent_fact
   where operation_id = any (:'operations'::text[])
     and pays
   group by operation_id
)
select g.operation_id as subject,
       g.operation_id,
       null::text as severity,
       case
         when k.idempotency_key is not null then 'key'
         when o.operation_id is not null then 'intent'
         when g.operation_id like 'pid:%' then 'payment_id'
         when g.operation_id like 'key:%' then 'key'
         else 'reference'
       end as basis,
       g.rail,
       g.scope,
       coalesce(r.intents, g.intents, '{}') as intents,
       g.charges,
       case when g.one_currency then g.excess else g.last_net end as amount_at_risk,
       g.later_currency as currency,
       g.occurred_at,
       format('%s was charged %s times within %s s',
              coalesce(g.reference, r.intents[1], g.intents[1], g.operation_id),
              g.charges_count, g.span_seconds) as summary,
       case when g.refund_locked
            then 'A dispute is open on the excess charge: answer or accept the dispute and do not refund, a '
                 'refund would pay the money back twice.'
            when g.last_rail = 'evm'
            then 'Keep the oldest payment. The excess went out on chain, so only the payee can send it back; that '
                 'transfer is counted as its refund. Then find the layer that signed again.'
       end as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'keeper', g.keeper, 'gapSeconds', g.span_seconds, 'sharedKey', k.idempotency_key,
         'outsideReplayWindow', case when k.idempotency_key is not null
                                     then g.span_seconds * interval '1 second' >= :'retry_horizon'::interval end,
         'charges', g.members)) as evidence,
       null::jsonb as look
  from groups g
  left join shared_keys k using (operation_id)
  left join shared_owners o using (operation_id)
  left join rows_of r using (operation_id)
 -- Refunds of at least the excess settle the group (case B29).
 where (not g.one_currency or g.excess > 0)
   -- Rows on their way name the operation; until then it would be told under another name.
   and (r.operation_id is not null or g.occurred_at + :'orphan_grace'::interval <= :'as_of'::timestamptz)
 order by subject
