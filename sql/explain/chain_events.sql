-- What the logs and looks of a chain say about some rows and charges, in the shape of events: the oldest first.
with charges as (
  select scope, id as charge_id
    from unnest(:'scopes'::text[], :'ids'::text[]) as o (scope, id)
), transfers as (
  select t.scope, t.tx_hash, t.log_index, t.block_number, t.block_time, t.nonce, t.final, t.gone_at,
         t.first_seen_at, t.scope || ':' || t.tx_hash || ':' || t.log_index as charge_id
    from charges c
    join tallyd.evm_transfer t
      on t.scope = c.scope
     and t.tx_hash = split_part(c.charge_id, ':', 3)
     and t.log_index::text = split_part(c.charge_id, ':', 4)
), rows_of as (
  select i.scope, i.nonce, i.payer, substring(i.charge_id from '0x[0-9a-f]{64}') as tx_hash
    from tallyd.intent i
   where i.intent_id = any (:'intents'::text[])
     and i.rail = 'evm'
), found as (
  select scope || ':' || tx_hash || ':' || log_index as event_id, 'chain.transfer' as type, scope,
         charge_id as object_id, nonce as idempotency_key, 'block ' || block_number as via,
         case when gone_at is not null then 'reorganised' when final then 'final' else 'provisional' end as status,
         block_time as created_at, first_seen_at as received_at
    from transfers
  union
  select a.scope || ':' || a.tx_hash || ':' || a.log_index, 'chain.authorization_' || a.outcome, a.scope, a.tx_hash,
         a.nonce, 'block ' || a.block_number,
         case when a.gone_at is not null then 'reorganised' when a.final then 'final' else 'provisional' end,
         a.block_time, a.block_time
    from (
           select scope, nonce, payer from rows_of where nonce is not null
           union
           select t.scope, t.nonce, null from transfers t where t.nonce is not null
         ) n
    join tallyd.evm_authorization a on a.scope = n.scope and a.nonce = n.nonce
   where n.payer is null
      or n.payer !~ '^0x'
      or a.authorizer = n.payer
  union
  select x.scope || ':' || x.tx_hash, 'chain.transaction_' || x.status, x.scope, x.tx_hash, null,
         coalesce('block ' || x.block_number, 'look'), case when x.final then 'final' else 'provisional' end,
         coalesce(x.block_time, x.looked_at), x.looked_at
    from rows_of r
    join tallyd.evm_transaction x on x.scope = r.scope and x.tx_hash = r.tx_hash
)
select event_id, type, scope, object_id, idempotency_key, via, status, 1 as deliveries, created_at, received_at
  from found
 order by created_at, received_at, event_id
 limit :'limit'
