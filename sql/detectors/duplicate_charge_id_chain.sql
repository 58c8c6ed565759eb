--! code: duplicate_charge_id
--! title: More rows name a transaction than it has transfers
--! severity: critical
--! needs: local, charges
--! advice: Money moved once for each transfer. Decide which rows the transfers belong to (by nonce, else by amount and payee) and correct the others: they were not paid by this transaction.
--
-- One transaction may hold many transfers, so rows that share its hash are fine while each has a transfer of
-- its own. Surplus rows were never paid (case B36). A row whose nonce was used elsewhere only noted a hash that was
-- replaced later, and a row that repeats the nonce of another is a resent payment unless both were recorded.
with touched as (
  select distinct i.scope, c.payment_intent as tx_hash
    from tallyd.intent_fact i
    join tallyd.charge c on c.scope = i.scope and i.charge_id in (c.charge_id, c.payment_intent)
   where i.operation_id = any (:'operations'::text[])
     and i.rail = 'evm'
     and i.pays
     and c.rail = 'evm'
     and c.status = 'succeeded'
), transfers as (
  select t.scope, t.tx_hash,
         count(*) as transfers_count,
         array_agg(c.charge_id order by split_part(c.charge_id, ':', 4)::bigint) as charges,
         array_agg(c.nonce) filter (where c.nonce is not null) as nonces,
         min(c.currency) as currency
    from touched t
    join tallyd.charge c on c.scope = t.scope and c.payment_intent = t.tx_hash
   where c.status = 'succeeded'
   group by t.scope, t.tx_hash
), claims as (
  select distinct t.scope, t.tx_hash, i.intent_id, i.operation_id, i.created_at, i.state, i.nonce,
         exists (
           select
             from tallyd.charge_match m
             join tallyd.charge c using (scope, charge_id)
            where m.intent_id = i.intent_id
              and c.status = 'succeeded'
         ) as paid,
         i.nonce = any (t.nonces) as repeated
    from transfers t
    join tallyd.intent_fact i
      on i.scope = t.scope
     and (i.charge_id = t.tx_hash or i.charge_id = any (t.charges))
     and i.pays
), groups as (
  select t.scope, t.tx_hash, t.transfers_count, t.charges, t.currency,
         array_agg(c.intent_id order by c.created_at, c.intent_id) as intents,
         (array_agg(c.operation_id order by c.created_at, c.intent_id))[1] as operation_id,
         array_agg(c.intent_id order by c.created_at, c.intent_id)
           filter (where not c.paid and (not coalesce(c.repeated, false) or c.state = 'recorded')) as surplus,
         max(c.created_at) as occurred_at
    from transfers t
    join claims c using (scope, tx_hash)
   group by t.scope, t.tx_hash, t.transfers_count, t.charges, t.currency
)
select 'charge:' || scope || ':' || tx_hash as subject,
       operation_id,
       null::text as severity,
       'charge_id' as basis,
       'evm' as rail,
       scope,
       intents,
       charges,
       0::numeric as amount_at_risk,
       currency,
       occurred_at,
       format('%s rows name transaction %s, which has %s transfers of ours', array_length(intents, 1), tx_hash,
              transfers_count) as summary,
       null::text as advice,
       jsonb_build_object('transaction', tx_hash, 'transfers', transfers_count, 'rows', to_jsonb(intents),
                          'surplus', to_jsonb(surplus), 'excess', '0') as evidence,
       null::jsonb as look
  from groups
 where surplus is not null
 order by subject
