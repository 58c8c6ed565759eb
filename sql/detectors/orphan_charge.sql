--! title: Money moved without a row that meant it
--! severity: critical
--! needs: charges, local
--! advice: Find who charged: the payment ran without a durable record. Add the missing row if the purchase was meant, else refund the charge.
--
-- A successful charge of ours that no mark ties to a row of the team's table, past the grace period in
-- which a row may still be on its way. The judge looks the row up directly before this is spoken.
with orphans as (
  select c.operation_id, c.scope, c.rail, c.charge_id, c.payment_intent, c.net, c.amount, c.currency, c.created_at,
         c.intent_mark, c.reference, c.key_mark, c.owned, c.invoice, c.nonce, c.payer, c.payee, c.purpose
    from tallyd.charge_fact c
   where c.operation_id = any (:'operations'::text[])
     and c.succeeded
     and c.net > 0
     and c.intent_id is null
     -- Somebody else's payment on a shared account is counted and never alerted.
     and c.owned <> 'no'
     -- Invoices follow their subscription where the team said so.
     and not (:'ignore_invoices'::boolean and c.invoice is not null)
     and c.created_at + :'orphan_grace'::interval <= :'as_of'::timestamptz
     -- On chain the grace is of the chain's own time: a row may be as late as the blocks are.
     and (c.rail <> 'evm'
          or c.created_at + :'orphan_grace'::interval <= (select e.final_time
                                                            from tallyd.evm_chain e
                                                           where e.scope = c.scope))
), keys as (
  select o.scope, o.charge_id, array_agg(distinct k.idempotency_key) as keys
    from orphans o
    join tallyd.object_key k on k.scope = o.scope and k.object_id in (o.charge_id, o.payment_intent)
   group by o.scope, o.charge_id
)
select o.operation_id as subject,
       o.operation_id,
       case
         when o.owned = 'unknown' then 'info'
         -- Our own wallet paid; anybody can send to a payee, whose transfers are not decidable.
         when o.rail = 'evm' then 'critical'
         when o.intent_mark is null then 'warning'
         else 'critical'
       end as severity,
       case when o.purpose = 'other_token' then 'other_token' end as basis,
       o.rail,
       o.scope,
       '{}'::text[] as intents,
       array[o.charge_id] as charges,
       o.net as amount_at_risk,
       o.currency,
       o.created_at as occurred_at,
       case when o.purpose = 'other_token'
            then format('%s brought %s %s, which is another token and no payment', o.charge_id, o.amount,
                        upper(o.currency))
            when o.rail = 'evm' and o.owned = 'yes'
            then format('%s paid %s %s to %s and no row of the local table belongs to it', o.payer, o.amount,
                        upper(o.currency), o.payee)
            when o.intent_mark is null
            then format('%s succeeded and no row of the local table belongs to it', o.charge_id)
            else format('%s succeeded for intent %s, which the local table does not have',
                        o.charge_id, o.intent_mark)
       end as summary,
       case when o.rail = 'evm' and o.owned = 'unknown'
            then 'Anybody can send tokens to a payee, so this may be nobody''s purchase. If it is one of yours, add '
                 'its row.'
            when o.rail = 'evm'
            then 'Find which agent signed this payment and add its row. Money on chain cannot be called back: only '
                 'the payee can return it.'
            when o.amount > :'local_amount_max'::numeric
            then 'The amount exceeds the type of the amount column, so the row could not be written: widen the '
                 'column (bigint or numeric), then add the row.'
       end as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'charge', o.charge_id, 'paymentIntent', o.payment_intent, 'amount', o.amount::text,
         'currency', o.currency, 'createdAt', o.created_at, 'intentMark', o.intent_mark,
         'reference', o.reference, 'keys', k.keys, 'invoice', o.invoice, 'nonce', o.nonce, 'payer', o.payer,
         'payee', o.payee,
         'hint', case when o.amount > :'local_amount_max'::numeric then 'exceeds column type' end)) as evidence,
       jsonb_build_object(
         'source', 'local', 'scope', o.scope,
         'chargeIds', jsonb_build_array(o.charge_id, o.payment_intent),
         'keys', to_jsonb(coalesce(k.keys, '{}') || coalesce(array[o.key_mark], '{}')),
         'intentIds', jsonb_build_array(o.intent_mark),
         'references', jsonb_build_array(o.reference),
         'nonces', jsonb_build_array(o.nonce)) as look
  from orphans o
  left join keys k using (scope, charge_id)
 order by subject
