--! code: state_drift
--! title: A row says paid and the chain says otherwise
--! severity: critical
--! needs: local, charges
--! advice: Nothing was received for this row. Stop the delivery or ask for payment again under a new authorization, and find out why an answer was taken for a settlement.
--
-- Recorded, but reverted, canceled, taken away by a reorganisation, or never there. A hash that was never mined is
-- no finding while its nonce was used as intended (case B35): the payment only has another hash. Success with a
-- failed row is the same on every rail and told by state_drift.sql.
with touched as (
  select i.intent_id, i.operation_id, i.scope, i.amount, i.currency, i.charge_id, i.nonce, i.payer, i.valid_before,
         i.created_at, i.updated_at, substring(i.charge_id from '0x[0-9a-f]{64}') as tx_hash,
         greatest(i.updated_at, i.created_at) + :'orphan_grace'::interval as due_at
    from tallyd.intent_fact i
   where i.operation_id = any (:'operations'::text[])
     and i.rail = 'evm'
     and i.pays
     and i.state = 'recorded'
     and not exists (
           select
             from tallyd.charge_match m
             join tallyd.charge c using (scope, charge_id)
            where m.intent_id = i.intent_id
              and c.status in ('succeeded', 'pending')
         )
), unpaid as (
  select t.intent_id, t.operation_id, t.scope, t.amount, t.currency, t.charge_id, t.nonce, t.payer,
         t.valid_before, t.created_at, t.updated_at, t.tx_hash, t.due_at, e.final_block, e.final_time,
         -- Blocks from before its time on are read; nothing is older than block 0.
         e.from_block = 0 or t.created_at >= (select min(lower(r))
                                                from tallyd.source s
                                               cross join lateral unnest(s.covered) as r
                                               where s.source = 'evm.logs'
                                                 and s.scope = t.scope) as covered
    from touched t
    join tallyd.evm_chain e using (scope)
   where e.stopped_at is null
     -- The blocks of its time are completely read, and a late block is out of the question.
     and e.final_time >= t.due_at
     -- Its nonce was used, for another row of the same purchase: told by authorization_reuse.
     and not exists (
           select
             from tallyd.charge c
            where c.scope = t.scope
              and c.nonce = t.nonce
              and (t.payer is null or t.payer !~ '^0x' or c.payer = t.payer)
              and c.status in ('succeeded', 'pending')
         )
     -- Its transaction moved money of ours, for other rows: told by duplicate_charge_id.
     and not exists (
           select
             from tallyd.charge c
            where c.scope = t.scope
              and c.payment_intent = t.tx_hash
              and c.status = 'succeeded'
         )
), facts as (
  select u.intent_id, u.operation_id, u.scope, u.amount, u.currency, u.charge_id, u.nonce, u.valid_before,
         u.created_at, u.updated_at, u.tx_hash, u.final_block, u.final_time, u.covered, x.status as tx_status,
         x.final as tx_final,
         (select a.outcome
            from tallyd.evm_authorization a
           where a.nonce = u.nonce
             and a.scope = u.scope
             and a.final
             and (u.payer is null or u.payer !~ '^0x' or a.authorizer = u.payer)
           limit 1) as outcome,
         exists (
           select
             from tallyd.charge c
            where c.scope = u.scope
              and (c.payment_intent = u.tx_hash or c.nonce = u.nonce)
              and c.status = 'failed'
              and c.failure_code = 'reorganised'
         ) as reorganised,
         (select array_agg(distinct c.charge_id)
            from tallyd.charge c
           where c.nonce = u.nonce
             and c.scope <> u.scope
             and c.status = 'succeeded') as seen_on
    from unpaid u
    left join tallyd.evm_transaction x on x.scope = u.scope and x.tx_hash = u.tx_hash
), named as (
  select f.intent_id, f.operation_id, f.scope, f.amount, f.currency, f.charge_id, f.nonce, f.valid_before,
         f.created_at, f.updated_at, f.tx_hash, f.final_block, f.final_time, f.seen_on, f.covered,
         case
           when f.tx_status = 'reverted' and f.tx_final then 'reverted'
           when f.outcome = 'canceled' then 'canceled'
           when f.reorganised then 'reorganised'
           else 'never_existed'
         end as basis
    from facts f
   -- A row without any mark cannot be looked for.
   where f.nonce is not null
      or f.tx_hash is not null
)
select n.operation_id as subject,
       n.operation_id,
       'warning' as severity,
       n.basis,
       'evm' as rail,
       n.scope,
       array[n.intent_id] as intents,
       case when n.tx_hash is null then '{}'::text[] else array[n.charge_id] end as charges,
       n.amount as amount_at_risk,
       n.currency,
       n.updated_at as occurred_at,
       case n.basis
         when 'reverted' then format('%s is recorded, but its transaction was reverted: nothing was received',
                                     n.intent_id)
         when 'canceled' then format('%s is recorded, but its authorization was canceled', n.intent_id)
         when 'reorganised' then format('%s is recorded, but a reorganisation took its block away', n.intent_id)
         else format('%s is recorded, but nothing of it is on %s%s', n.intent_id, n.scope,
                     case when n.seen_on is not null
                          then ': the same nonce moved money on ' || (select string_agg(distinct
                                 split_part(s, ':0x', 1), ', ') from unnest(n.seen_on) as s)
                          else '' end)
       end as summary,
       case
         when n.seen_on is not null
         then 'The money moved on another chain than the row says. Correct the row''s network, or refund there.'
         when n.basis in ('never_existed', 'reorganised') and n.valid_before > n.final_time
         then format('Its authorization can still be used until %s: submit it again rather than sign a new one.',
                     to_char(n.valid_before at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'))
       end as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'localState', 'recorded', 'charge', n.charge_id, 'nonce', n.nonce, 'validBefore', n.valid_before,
         'readUpToBlock', n.final_block::text, 'readUpTo', n.final_time, 'seenOn', to_jsonb(n.seen_on))) as evidence,
       -- What is proven by a log or a receipt needs no look.
       case when n.basis in ('never_existed', 'reorganised')
            then jsonb_build_object('source', 'evm', 'scope', n.scope, 'intent', n.intent_id) end as look
  from named n
 where n.basis <> 'never_existed'
    or n.covered
 order by subject, n.intent_id
