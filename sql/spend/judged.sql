-- Subjects of incidents about accounts and days that a judging of these operations decides: those that the
-- operations touch, and those of caps that are not configured any more. Spelled as in
-- sql/detectors/spend_cap_exceeded.sql.
with caps as (
  select distinct per, currency, amount
    from jsonb_to_recordset(:'spend_caps'::jsonb) as c (per text, currency text, amount numeric)
), touched as (
  select s.account_id, s.created_at
    from tallyd.spend_charge s
   where s.operation_id = any (:'operations'::text[])
     -- Without caps nothing is read.
     and (select count(*) from caps) > 0
  union all
  -- The last charge of an operation may have moved to another one, and with it to another account.
  select i.account_id, null
    from tallyd.intent_match m
    join tallyd.intent i using (intent_id)
   where m.operation_id = any (:'operations'::text[])
     and (select count(*) from caps) > 0
)
select format('cap:account:%s:%s:%s', c.currency, c.amount, t.account_id) as subject
  from caps c
 cross join (select distinct account_id from touched where account_id is not null) t
 where c.per = 'account'
union
select format('cap:day:%s:%s:%s', c.currency, c.amount, t.day)
  from caps c
 cross join (
         select distinct (created_at at time zone :'time_zone'::text)::date as day
           from touched
          where created_at is not null
       ) t
 where c.per = 'day'
union
select i.subject
  from tallyd.incident i
 where i.code = 'spend_cap_exceeded'
   and i.status <> 'closed'
   and i.operation_id is null
   and not exists (
         select
           from caps c
          where starts_with(i.subject, format('cap:%s:%s:%s:', c.per, c.currency, c.amount))
       )
