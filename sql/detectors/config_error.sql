--! about: sources
--! title: A setting keeps tallyd from working
--! severity: warning
--! needs: sources
--! advice: Run tallyd doctor: it names the setting, what it saw and what is allowed.
--
-- Many equal symptoms are one fault of configuration: refused keys, signatures that never fit, a clock that is
-- off, the wrong mode, rows that cannot be read, a column that is too narrow, a right that is lacking, a dead hook.
with refused as (
  select 'key:' || min(s.scope) as subject, min(s.scope) as scope, 'key_refused' as basis,
         min(s.failing_since) as occurred_at,
         format('Reading is refused: %s', max(s.last_error)) as summary,
         'Check the key or the database role: it was revoked, or lacks the right to read.' as advice,
         jsonb_build_object('sources', jsonb_agg(distinct s.source), 'code', max(s.last_error_code)) as evidence
    from tallyd.source s
   where s.failing_since is not null
     and s.last_error_code in ('auth', 'permission', 'rights')
   group by s.last_error_code
), signatures as (
  select 'webhook:signature' as subject, null::text as scope, 'signature' as basis, max(t.last_at) as occurred_at,
         format('%s webhook requests in a row were refused: %s', sum(t.streak),
                string_agg(replace(t.name, '_', ' '), ', ' order by t.streak desc)) as summary,
         case (array_agg(t.name order by t.streak desc))[1]
           when 'signature_failure' then 'Set STRIPE_WEBHOOK_SECRET to the secret of this endpoint; while a '
                                         'secret is rolled give both, separated by a comma. A proxy that changes '
                                         'the body has the same effect.'
           when 'secret_unset' then 'Set STRIPE_WEBHOOK_SECRET to the secret of this endpoint.'
           else 'Somebody else calls the webhook address, or a proxy drops the Stripe-Signature header.'
         end as advice,
         jsonb_object_agg(t.name, t.streak) as evidence
    from tallyd.tally t
   where t.name in ('signature_missing', 'signature_malformed', 'signature_failure', 'secret_unset')
  having sum(t.streak) >= 5
), skew as (
  select 'webhook:clock' as subject, null::text as scope, 'clock_skew' as basis, t.last_at as occurred_at,
         format('%s webhooks in a row had a right signature and a time that is off: clock skew about %s s',
                t.streak, o.median) as summary,
         'Set the clock of this machine (NTP). Signatures are checked against it when a webhook arrives.' as advice,
         jsonb_build_object('streak', t.streak, 'offsetSeconds', o.median, 'low', o.low, 'high', o.high) as evidence
    from tallyd.tally t
   cross join lateral (
           select percentile_disc(0.5) within group (order by r::numeric) as median,
                  min(r::numeric) as low,
                  max(r::numeric) as high
             from jsonb_array_elements_text(coalesce(t.detail -> 'recent', '[]'::jsonb)) as r
         ) o
   where t.name = 'stale_valid'
     and t.streak >= 5
), wrong_mode as (
  select 'webhook:mode' as subject, null::text as scope, 'wrong_mode' as basis, t.last_at as occurred_at,
         format('%s events of the other mode were ignored', t.total) as summary,
         'A test endpoint points here, or stripe.livemode is wrong: each mode needs a tallyd of its own.' as advice,
         jsonb_build_object('total', t.total) as evidence
    from tallyd.tally t
   where t.name = 'other_mode'
     and t.last_at > :'as_of'::timestamptz - interval '1 day'
), foreign_accounts as (
  select 'webhook:account' as subject, null::text as scope, 'foreign_account' as basis, t.last_at as occurred_at,
         format('%s events of accounts that are not configured were ignored', t.total) as summary,
         'Add the account to stripe.accounts if its payments are meant to be watched.' as advice,
         jsonb_build_object('total', t.total, 'recent', t.detail -> 'recent') as evidence
    from tallyd.tally t
   where t.name = 'foreign_account'
     and t.last_at > :'as_of'::timestamptz - interval '1 day'
), unreadable_rows as (
  select 'local:rows' as subject, 'local' as scope, 'rows' as basis, min(f.first_at) as occurred_at,
         format('%s rows of the local table cannot be read as they are', count(*)) as summary,
         'Correct the rows, or map the state names and expressions in the intents block of the '
         'settings file.' as advice,
         jsonb_build_object('count', count(*), 'examples',
           (array_agg(jsonb_build_object('intent', f.intent_id, 'faults',
                  f.faults) order by f.intent_id))[1:5]) as evidence
    from tallyd.intent_fault f
   -- What was kept and lies in the future is told by its time; two rows of one id are told here.
   where not f.kept
      or f.faults @> '[{"field": "intentId"}]'
  having count(*) > 0
), future_rows as (
  select 'local:future' as subject, 'local' as scope, 'time' as basis, min(i.updated_at) as occurred_at,
         format('%s rows of the local table lie in the future', count(*)) as summary,
         'The table''s times are read in the wrong zone (intents.timeZone), or the writer''s clock is off.' as advice,
         jsonb_build_object('count', count(*), 'examples',
                to_jsonb((array_agg(i.intent_id order by i.intent_id))[1:5]),
                            'ahead', max(i.updated_at - :'as_of'::timestamptz)::text) as evidence
    from tallyd.intent_fact i
   -- Clocks differ by seconds, zones by quarter hours.
   where i.updated_at > :'as_of'::timestamptz + interval '5 minutes'
  having count(*) > 0
), narrow as (
  select 'local:amount' as subject, 'local' as scope, 'narrow_column' as basis, min(c.created_at) as occurred_at,
         format('%s charges have an amount that the local amount column cannot hold', count(*)) as summary,
         'Widen the column: alter it to bigint or numeric(78,0). Rows above its limit could never '
         'be written.' as advice,
         jsonb_build_object('limit', :'local_amount_max'::numeric::text,
                            'charges', to_jsonb((array_agg(c.charge_id order by c.charge_id))[1:5])) as evidence
    from tallyd.charge c
   where c.amount > :'local_amount_max'::numeric
     and c.owned <> 'no'
  having count(*) > 0
), unwatched as (
  select 'chain:' || i.scope as subject, i.scope, 'unwatched_chain' as basis, min(i.created_at) as occurred_at,
         format('%s rows name %s, which is not configured: nothing is known of their payments', count(*),
                i.scope) as summary,
         'Add the chain to the chains block of the settings file, or correct the network of the rows.' as advice,
         jsonb_build_object('count', count(*), 'examples',
                            to_jsonb((array_agg(i.intent_id order by i.intent_id))[1:5])) as evidence
    from tallyd.intent_fact i
   where i.rail = 'evm'
     and i.scope <> all (:'chain_scopes'::text[])
   group by i.scope
), rights as (
  select 'local:rights' as subject, 'local' as scope, 'rights' as basis, t.last_at as occurred_at,
         format('What is settled cannot be written: the role %s has no UPDATE right on %s of %s',
                t.detail ->> 'role',
                (select string_agg(c.name, ', ' order by c.place)
                   from jsonb_array_elements_text(t.detail -> 'columns') with ordinality as c (name, place)),
                t.detail ->> 'relation') as summary,
         format('Run "%s" as the owner of the table (deploy/grants.sql does it), or set RESOLVE=suggest if nothing '
                'shall be written.', t.detail ->> 'grant') as advice,
         t.detail as evidence
    from tallyd.tally t
   where t.name = 'rights_lacking'
     and t.streak > 0
), hooks as (
  select 'hook:' || h.channel as subject, null::text as scope, 'dead_hook' as basis, h.failing_since as occurred_at,
         format('Alerts cannot be delivered: %s', h.last_error) as summary,
         'Make a new incoming webhook in Slack and set its address; nothing was lost, what waits '
         'will be sent.' as advice,
         jsonb_build_object('channel', h.channel, 'failures', h.failures) as evidence
    from tallyd.hook h
   where h.last_error_code = 'dead'
     and h.failing_since is not null
), found as (
  select subject, scope, basis, occurred_at, summary, advice, evidence from refused
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from signatures
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from skew
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from wrong_mode
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from foreign_accounts
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from unreadable_rows
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from future_rows
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from narrow
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from unwatched
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from rights
  union all
  select subject, scope, basis, occurred_at, summary, advice, evidence from hooks
)
select subject, null::text as operation_id,
       case when basis = 'foreign_account' then 'info' end as severity,
       basis, null::text as rail, scope, '{}'::text[] as intents, '{}'::text[] as charges,
       null::numeric as amount_at_risk, null::text as currency, occurred_at, summary, advice, evidence,
       null::jsonb as look
  from found
 order by subject
