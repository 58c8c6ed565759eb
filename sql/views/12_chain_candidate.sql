-- Which intents a charge on chain belongs to. The (authorizer, nonce) is its name: a hash may change with a
-- higher fee and may hold many transfers (cases B35, B36). A row that names a hash owns a transfer of it only
-- when its own nonce does not say otherwise; several rows and alike transfers of one transaction are paired
-- in their order.
create view tallyd.chain_candidate as
select c.scope, c.charge_id, 0 as rule, 'nonce' as basis, i.intent_id, i.created_at,
       -- A resent payment may stand on several rows: the one that was recorded is its home.
       (i.state <> 'recorded')::integer as preference
  from tallyd.charge c
  join tallyd.intent_fact i on i.nonce = c.nonce and i.scope = c.scope and i.pays
 where c.rail = 'evm'
   and (i.asset is null or i.asset = c.asset)
   and (i.payer is null or i.payer !~ '^0x' or i.payer = c.payer)
union all
select c.scope, c.charge_id, 1, 'charge_id', i.intent_id, i.created_at, (i.state <> 'recorded')::integer
  from tallyd.charge c
  join tallyd.intent_fact i on i.charge_id = c.charge_id and i.scope = c.scope and i.pays
 where c.rail = 'evm'
   and (i.nonce is null or c.nonce is null or i.nonce = c.nonce)
union all
select c.scope, c.charge_id, 1, 'charge_id', r.intent_id, r.created_at, (r.state <> 'recorded')::integer
  from tallyd.charge c
 cross join lateral (
         -- Transfers of the transaction that a bare hash could mean, and the place of this one among those alike.
         select count(*) as all_of_it,
                count(*) filter (where o.payer = c.payer
                                   and o.payee = c.payee
                                   and o.asset = c.asset
                                   and o.amount = c.amount
                                   and split_part(o.charge_id, ':', 4)::bigint
                                       <= split_part(c.charge_id, ':', 4)::bigint) as place
           from tallyd.charge o
          where o.scope = c.scope
            and o.payment_intent = c.payment_intent
       ) t
 cross join lateral (
         select i.intent_id, i.created_at, i.state, i.nonce, i.payee, i.asset, i.amount,
                row_number() over (partition by i.nonce is null, i.payee, i.amount
                                   order by i.created_at, i.intent_id) as place
           from tallyd.intent_fact i
          where i.scope = c.scope
            and i.charge_id = c.payment_intent
            and i.pays
       ) r
 where c.rail = 'evm'
   and case
         when r.nonce is not null and c.nonce is not null then r.nonce = c.nonce
         when t.all_of_it = 1 then true
         else (r.payee is null or r.payee !~ '^0x' or r.payee = c.payee)
              and (r.asset is null or r.asset = c.asset)
              and r.amount = c.amount
              and r.place = t.place
       end
union all
-- The Machine Payments Protocol makes the nonce, or the memo of the transfer, from the challenge.
select c.scope, c.charge_id, 4, 'payment_id', i.intent_id, i.created_at, (i.state <> 'recorded')::integer
  from tallyd.charge c
  join tallyd.intent_fact i on i.challenge_nonce = c.nonce and i.scope = c.scope and i.pays
 where c.rail = 'evm'
union all
select c.scope, c.charge_id, 4, 'payment_id', i.intent_id, i.created_at, (i.state <> 'recorded')::integer
  from tallyd.charge c
  join tallyd.evm_transfer t
    on t.scope = c.scope
   and t.tx_hash = c.payment_intent
   and t.log_index::text = split_part(c.charge_id, ':', 4)
  join tallyd.intent_fact i
    on i.challenge_memo = left(t.memo, 32) || right(t.memo, 14)
   and i.scope = c.scope
   and i.pays
 where c.rail = 'evm'
   and t.memo is not null;
