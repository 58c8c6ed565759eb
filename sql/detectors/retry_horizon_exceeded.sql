--! title: A retry of this row would no longer be protected by its key
--! severity: warning
--! needs: local
--! advice: Do not retry it. The provider may have pruned the key, so the same key would charge again. Look the payment up, then mint a new intent if it never happened.
--
-- A row that may still be retried is older than the replay window of its key (case B09).
select i.operation_id as subject,
       i.operation_id,
       null::text as severity,
       null::text as basis,
       i.rail,
       i.scope,
       array[i.intent_id] as intents,
       '{}'::text[] as charges,
       i.amount as amount_at_risk,
       i.currency,
       i.created_at + :'retry_horizon'::interval as occurred_at,
       format('%s is %s and its key is %s hours old', i.intent_id, i.state,
              floor(extract(epoch from :'as_of'::timestamptz - i.created_at) / 3600)::bigint) as summary,
       null::text as advice,
       jsonb_build_object('intent', i.intent_id, 'state', i.state, 'mintedAt', i.created_at,
                          'key', i.idempotency_key) as evidence,
       null::jsonb as look
  from tallyd.intent_fact i
 where i.operation_id = any (:'operations'::text[])
   and i.state in ('key_minted', 'failed_retryable')
   and i.created_at + :'retry_horizon'::interval <= :'as_of'::timestamptz
   -- A success of its own is told as drift or recorded by the resolver.
   and not exists (
         select
           from tallyd.charge_fact c
          where c.intent_id = i.intent_id
            and c.succeeded
       )
 order by subject, i.intent_id
