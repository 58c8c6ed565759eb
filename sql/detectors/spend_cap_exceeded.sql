--! title: More was charged than a cap allows
--! severity: critical
--! needs: charges
--! advice: Stop the agent that pays before anything else: a cap is passed when something pays again and again. Look at the newest payments, then refund what was not meant or raise the cap (SPEND_CAPS).
--
-- What was charged, net of refunds and lost disputes, against the caps: of an operation and of an account over all
-- time, of a day (in the configured zone) over all accounts. Each currency stands alone; a token is its symbol. The
-- sums are those of src/store/spend.ts, which counts the operations right before they are judged.
with caps as (
  select distinct per, currency, amount
    from jsonb_to_recordset(:'spend_caps'::jsonb) as c (per text, currency text, amount numeric)
), counted as (
  select s.scope, s.charge_id, s.operation_id, s.intent_id, s.account_id, s.currency, s.net, s.created_at
    from tallyd.spend_charge s
   where s.operation_id = any (:'operations'::text[])
     -- Without caps nothing is read.
     and (select count(*) from caps) > 0
), running as (
  select c.operation_id, c.scope, c.charge_id, c.intent_id, c.currency, c.created_at, c.net,
         sum(c.net) over (partition by c.operation_id, c.currency order by c.created_at, c.charge_id) as sum_so_far
    from counted c
   where c.net > 0
), of_operation as (
  select r.operation_id, p.currency, p.amount as cap, sum(r.net) as sum,
         min(r.created_at) filter (where r.sum_so_far > p.amount) as occurred_at,
         array_agg(r.charge_id order by r.created_at, r.charge_id) as charges,
         (array_agg(r.charge_id order by r.created_at desc, r.charge_id desc))[1] as newest_charge,
         array_agg(distinct r.intent_id) filter (where r.intent_id is not null) as intents,
         (array_agg(r.intent_id order by r.created_at desc, r.charge_id desc)
            filter (where r.intent_id is not null))[1] as newest_intent,
         case when count(distinct r.scope) = 1 then min(r.scope) end as scope
    from running r
    join caps p on p.per = 'operation' and p.currency = r.currency
   group by r.operation_id, p.currency, p.amount
  having sum(r.net) > p.amount
), of_account as (
  select a.account_id, p.currency, p.amount as cap, a.net as sum, n.charge_id as newest_charge,
         i.intent_id as newest_intent
    from (
           select account_id from counted
           union
           select i.account_id
             from tallyd.intent_match m
             join tallyd.intent i using (intent_id)
            where m.operation_id = any (:'operations'::text[])
              and (select count(*) from caps) > 0
         ) t
   cross join caps p
    join tallyd.spend_account a on a.account_id = t.account_id and a.currency = p.currency
    left join lateral (
           select s.charge_id
             from tallyd.spend_charge s
            where s.account_id = a.account_id
              and s.currency = p.currency
              and s.net > 0
            order by s.created_at desc, s.charge_id desc
            limit 1
         ) n on true
    left join lateral (
           select s.intent_id
             from tallyd.spend_charge s
            where s.account_id = a.account_id
              and s.currency = p.currency
              and s.net > 0
              and s.intent_id is not null
            order by s.created_at desc, s.charge_id desc
            limit 1
         ) i on true
   where p.per = 'account'
     and a.net > p.amount
), of_day as (
  select d.day, p.currency, p.amount as cap, t.sum, n.charge_id as newest_charge, i.intent_id as newest_intent
    from (
           select distinct (created_at at time zone :'time_zone'::text)::date as day, currency
             from counted
         ) d
    join caps p on p.per = 'day' and p.currency = d.currency
   -- A day is what its clock says. The bounds only keep the reading short; they are wider than a change of the
   -- clock at midnight.
   cross join lateral (
           select (d.day::timestamp at time zone :'time_zone'::text) - interval '3 hours' as from_at,
                  ((d.day + 1)::timestamp at time zone :'time_zone'::text) + interval '3 hours' as to_at
         ) b
   cross join lateral (
           select sum(s.net) as sum
             from tallyd.spend_slot s
            where s.currency = p.currency
              and s.slot >= b.from_at
              and s.slot < b.to_at
              and (s.slot at time zone :'time_zone'::text)::date = d.day
         ) t
    left join lateral (
           select s.charge_id
             from tallyd.spend_charge s
            where s.currency = p.currency
              and s.net > 0
              and s.created_at >= b.from_at
              and s.created_at < b.to_at
              and (s.created_at at time zone :'time_zone'::text)::date = d.day
            order by s.created_at desc, s.charge_id desc
            limit 1
         ) n on true
    left join lateral (
           select s.intent_id
             from tallyd.spend_charge s
            where s.currency = p.currency
              and s.net > 0
              and s.intent_id is not null
              and s.created_at >= b.from_at
              and s.created_at < b.to_at
              and (s.created_at at time zone :'time_zone'::text)::date = d.day
            order by s.created_at desc, s.charge_id desc
            limit 1
         ) i on true
   where t.sum > p.amount
), passed as (
  select 'operation' as per, operation_id as about, operation_id, currency, cap, sum, occurred_at,
         coalesce(intents, '{}') as intents, charges, newest_intent, newest_charge, scope
    from of_operation
  union all
  select 'account', account_id, null, currency, cap, sum, null,
         array_remove(array[newest_intent], null), array_remove(array[newest_charge], null),
         newest_intent, newest_charge, null
    from of_account
  union all
  select 'day', day::text, null, currency, cap, sum, null,
         array_remove(array[newest_intent], null), array_remove(array[newest_charge], null),
         newest_intent, newest_charge, null
    from of_day
)
select format('cap:%s:%s:%s:%s', per, currency, cap, about) as subject,
       operation_id,
       null::text as severity,
       per as basis,
       case when scope is not null then case when scope like 'eip155:%' then 'evm' else 'stripe' end end as rail,
       scope,
       intents,
       charges,
       sum - cap as amount_at_risk,
       currency,
       occurred_at,
       format('%s was charged %s %s in minor units where %s are allowed',
              case per
                when 'operation' then format('The purchase %s', coalesce(newest_intent, about))
                when 'account' then format('The account %s', about)
                else format('The day %s (%s)', about, :'time_zone'::text)
              end,
              sum, upper(currency), cap) as summary,
       null::text as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'per', per, 'sum', sum::text, 'cap', cap::text, 'excess', (sum - cap)::text, 'currency', currency,
         per, about, 'timeZone', case when per = 'day' then :'time_zone'::text end,
         'newestIntent', newest_intent, 'newestCharge', newest_charge)) as evidence,
       null::jsonb as look
  from passed
 order by subject
