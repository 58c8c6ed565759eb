--! about: sources
--! code: coverage_gap
--! title: A chain cannot be seen completely
--! severity: critical
--! needs: sources
--! advice: Until this is over, nothing is said about payments that might be missing there. Run tallyd doctor: it asks every endpoint of the chain.
--
-- A chain that was stopped, a balance that the transfers do not explain, and endpoints that were set aside because
-- they answered wrongly, lag or fail (invariant 11). A chain whose reading fails altogether is told by
-- coverage_gap.sql.
with stopped as (
  select 'chain:' || e.scope as subject, e.scope, 'stopped' as basis, null::text as severity,
         e.stopped_at as occurred_at,
         format('%s is stopped: %s', e.scope, e.stopped_reason) as summary,
         'Nothing stored was touched. If an endpoint serves another chain, correct chains.rpcUrls. If the chain '
         'itself was reset, which happens to test chains, give tallyd a fresh database.' as advice,
         jsonb_strip_nulls(jsonb_build_object('source', 'evm.logs', 'reason', e.stopped_reason,
                            'cursorBlock', e.final_block::text, 'cursorHash', e.final_hash)) as evidence
    from tallyd.evm_chain e
   where e.stopped_at is not null
     and e.scope = any (:'chain_scopes'::text[])
), unbalanced as (
  select 'balance:' || b.scope || ':' || b.token || ':' || b.address as subject, b.scope, 'balance' as basis,
         null::text as severity, b.checked_at as occurred_at,
         format('The balance of %s on %s is not what its transfers explain: %s against %s', b.address, b.scope,
                b.actual, b.expected) as summary,
         'A node answered without some logs, or the token moves balances without transfers. Add a second '
         'endpoint; tallyd reads the range again.' as advice,
         jsonb_build_object('source', 'evm.logs', 'token', b.token, 'address', b.address,
                            'expected', b.expected::text, 'actual', b.actual::text,
                            'difference', (b.actual - b.expected)::text,
                            'fromBlock', b.base_block::text, 'toBlock', b.checked_block::text) as evidence
    from tallyd.evm_balance b
   where b.actual <> b.expected
     and b.scope = any (:'chain_scopes'::text[])
), endpoints as (
  select 'endpoint:' || p.scope || ':' || p.endpoint as subject, p.scope, 'endpoint' as basis,
         -- Others go on reading; a wrong answer stays critical, since it could have been believed.
         case when p.state <> 'aside'
                   and exists (
                         select
                           from tallyd.evm_endpoint o
                          where o.scope = p.scope
                            and o.state = 'ok'
                       )
              then 'warning' end as severity,
         p.since as occurred_at,
         format('Endpoint %s of %s is %s: %s', p.endpoint, p.scope,
                case p.state when 'aside' then 'set aside' when 'behind' then 'behind' else 'failing' end,
                coalesce(p.reason, 'no reason')) as summary,
         null::text as advice,
         jsonb_strip_nulls(jsonb_build_object('source', 'evm.logs', 'endpoint', p.endpoint, 'state', p.state,
                            'reason', p.reason, 'since', p.since, 'lastOkAt', p.last_ok_at,
                            'headBlock', p.head_block::text, 'failures', p.failures)) as evidence
    from tallyd.evm_endpoint p
   where p.scope = any (:'chain_scopes'::text[])
     and (p.state = 'aside'
          -- One failure is weather, and a node that lags for a moment is usual behind a balancer.
          or p.state = 'failing' and p.failures >= 3
          or p.state = 'behind' and p.since + interval '5 minutes' <= :'as_of'::timestamptz)
), standing as (
  -- The chain's own clock: blocks that do not come, or that never become final.
  select 'head:' || e.scope as subject, e.scope, 'standing' as basis, null::text as severity,
         e.final_time as occurred_at,
         format('No final block of %s is newer than %s', e.scope,
                to_char(e.final_time at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')) as summary,
         'The endpoints do not move on, or the chain stands still.' as advice,
         jsonb_build_object('source', 'evm.logs', 'finalBlock', e.final_block::text, 'finalTime', e.final_time,
                            'headBlock', e.head_block::text, 'headTime', e.head_time) as evidence
    from tallyd.evm_chain e
   where e.scope = any (:'chain_scopes'::text[])
     and e.stopped_at is null
     -- Finalized is some twenty minutes behind on the slowest chains, and a backlog is no standstill.
     and e.head_time + interval '2 hours' < :'as_of'::timestamptz
), found as (
  select subject, scope, basis, severity, occurred_at, summary, advice, evidence from stopped
  union all
  select subject, scope, basis, severity, occurred_at, summary, advice, evidence from unbalanced
  union all
  select subject, scope, basis, severity, occurred_at, summary, advice, evidence from endpoints
  union all
  select subject, scope, basis, severity, occurred_at, summary, advice, evidence from standing
)
select subject, null::text as operation_id, severity, basis, 'evm' as rail, scope, '{}'::text[] as intents,
       '{}'::text[] as charges, null::numeric as amount_at_risk, null::text as currency, occurred_at, summary,
       advice, evidence, null::jsonb as look
  from found
 order by subject
