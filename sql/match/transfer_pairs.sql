-- The pairs of addresses of touched charges on chain, with every payment between the two and every transfer
-- that went back, oldest first. What a pair has beyond the limit stays as it was placed.
with pairs as (
  select distinct c.scope, c.asset, c.payer, c.payee
    from unnest(:'scopes'::text[], :'charge_ids'::text[]) as w (scope, charge_id)
    join tallyd.charge c using (scope, charge_id)
   where c.rail = 'evm'
     and c.asset is not null
     -- Most payers never get anything back.
     and exists (
           select
             from tallyd.evm_transfer t
            where t.scope = c.scope
              and t.token = c.asset
              and t.sender = c.payee
              and t.recipient = c.payer
         )
), paid as (
  select p.scope, p.asset, p.payer, p.payee, 'paid' as direction, c.charge_id as id, m.operation_id, c.amount,
         c.created_at as at, c.position, '{}'::text[] as named
    from pairs p
    join tallyd.evm_transfer t
      on t.scope = p.scope and t.token = p.asset and t.sender = p.payer and t.recipient = p.payee
    join tallyd.charge c
      on c.scope = t.scope and c.charge_id = t.scope || ':' || t.tx_hash || ':' || t.log_index
    left join tallyd.charge_match m on m.scope = c.scope and m.charge_id = c.charge_id
   where c.status = 'succeeded'
), back as (
  select p.scope, p.asset, p.payer, p.payee, 'back' as direction, r.refund_id as id, null::text as operation_id,
         r.amount, r.created_at as at, 0::bigint as position,
         array(select i.operation_id
                 from tallyd.intent_fact i
                where i.scope = r.scope
                  and not i.pays
                  and i.operation_id is not null
                  and (i.charge_id in (r.refund_id, t.tx_hash) or i.nonce = t.nonce)) as named
    from pairs p
    join tallyd.evm_transfer t
      on t.scope = p.scope and t.token = p.asset and t.sender = p.payee and t.recipient = p.payer
    join tallyd.refund r
      on r.scope = t.scope and r.refund_id = t.scope || ':' || t.tx_hash || ':' || t.log_index
   where r.status = 'succeeded'
)
select scope, asset, payer, payee, direction, id, operation_id, amount, at, position, named
  from (
         select scope, asset, payer, payee, direction, id, operation_id, amount, at, position, named
           from paid
         union all
         select scope, asset, payer, payee, direction, id, operation_id, amount, at, position, named
           from back
       ) transfers
 order by at desc, position desc, id
 limit :'limit'
