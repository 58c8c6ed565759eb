--! code: config_error
--! about: sources
--! title: Many equal findings point to one fault
--! severity: warning
--! needs: sources
--! advice: Look at a few of the examples: what they share is most likely one setting or one defect of the writer. Correct that, and they end by themselves.
--
-- A hundred open incidents of one kind and sign are hardly a hundred troubles. What could be a payment paid twice,
-- money disputed or a cap passed is never taken for it. While this is open, further ones of its kind are told
-- together, every quarter of an hour.
with members as (
  select i.id, i.code, coalesce(i.basis, '') as basis, coalesce(i.scope, '') as scope, i.severity,
         i.first_seen,
         -- Only a factor of ten tells amounts in major units from amounts that are wrong one by one.
         case when i.code = 'amount_mismatch' then coalesce(i.evidence ->> 'factor', '') else '' end as factor
    from tallyd.incident i
   where i.status <> 'closed'
     and i.severity <> 'info'
     and i.operation_id is not null
     and i.code in ('orphan_charge', 'state_drift', 'amount_mismatch', 'stuck_in_flight', 'stuck_reconciling',
                    'retry_horizon_exceeded', 'fingerprint_conflict', 'key_reuse')
     and i.basis is distinct from 'failed_but_paid'
), floods as (
  select code, basis, scope, factor, count(*) as members, min(first_seen) as occurred_at,
         bool_or(severity = 'critical') as critical,
         (array_agg(id order by first_seen, id))[1:5] as examples
    from members
   group by code, basis, scope, factor
  -- Fewer may be true one by one, and one digest holds them.
  having count(*) >= 100
)
select concat_ws(':', 'flood', code, basis, scope, factor) as subject,
       null::text as operation_id,
       case when critical then 'critical' end as severity,
       'flood' as basis,
       null::text as rail,
       nullif(scope, '') as scope,
       '{}'::text[] as intents,
       '{}'::text[] as charges,
       null::numeric as amount_at_risk,
       null::text as currency,
       occurred_at,
       format('%s open incidents of %s%s: most likely one fault and not %s', members, code,
              case when factor <> '' then format(' with the factor %s', factor)
                   when basis <> '' then format(' (%s)', basis)
                   else '' end,
              members) as summary,
       case code
         when 'orphan_charge'
         then 'Either the rows are somewhere else (INTENTS_TABLE, the mapping, the marks in the metadata), or other '
              'programs charge on this account: set stripe.owned then.'
         when 'amount_mismatch'
         then case when factor <> ''
                   then 'The table holds amounts in another unit: map intents.columns.amount to minor units.'
                   else 'Check the mapping of amount, currency and payee in the intents block.' end
         when 'state_drift'
         then 'Check that the key is of the account and mode that the rows were paid in, and the mapping of state '
              'and charge id.'
         when 'stuck_in_flight'
         then 'The worker that finishes rows is down, intents.states names a final state as in_flight, or the '
              'table''s times are read in the wrong zone.'
         when 'stuck_reconciling'
         then 'They lack the same proof: see what is missing in one of them (a key, coverage, a mark on the payments).'
       end as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'count', members, 'code', code, 'sign', nullif(basis, ''), 'factor', nullif(factor, ''),
         'examples', to_jsonb(examples))) as evidence,
       null::jsonb as look
  from floods
 order by subject
