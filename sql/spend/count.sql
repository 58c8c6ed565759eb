-- Counts the charges of these operations anew and moves the sums of accounts and quarters of an hour by what
-- changed since they were counted last. One statement, so that a charge and the sums it is in agree.
with owners as (
  -- A charge without a row of its own belongs to the account of its operation's rows where all name one.
  select m.operation_id, min(i.account_id) as account_id
    from tallyd.intent_match m
    join tallyd.intent i using (intent_id)
   where m.operation_id = any (:'operations'::text[])
   group by m.operation_id
  having count(distinct i.account_id) = 1
), facts as (
  select c.scope, c.charge_id, c.operation_id, c.intent_id, c.currency, c.net, c.created_at,
         coalesce(i.account_id, o.account_id,
                  -- What a connected account was charged for is its own.
                  case when c.scope like 'acct\_%' then split_part(c.scope, '/', 1) end) as account_id
    from tallyd.charge_fact c
    left join tallyd.intent i on i.intent_id = c.intent_id
    left join owners o on o.operation_id = c.operation_id
   where c.operation_id = any (:'operations'::text[])
     and c.succeeded
     and c.net > 0
     -- Somebody else's money on a shared account is nobody's spending here.
     and c.owned <> 'no'
), known as (
  select s.scope, s.charge_id, s.operation_id, s.intent_id, s.currency, s.net, s.created_at, s.account_id
    from tallyd.spend_charge s
   where s.operation_id = any (:'operations'::text[])
  union
  select s.scope, s.charge_id, s.operation_id, s.intent_id, s.currency, s.net, s.created_at, s.account_id
    from facts f
    join tallyd.spend_charge s using (scope, charge_id)
), fresh as (
  select scope, charge_id, operation_id, intent_id, currency, net, created_at, account_id
    from facts
  union all
  select k.scope, k.charge_id, k.operation_id, k.intent_id, k.currency, 0, k.created_at, k.account_id
    from known k
   where not exists (select from facts f where f.scope = k.scope and f.charge_id = k.charge_id)
), saved as (
  insert into tallyd.spend_charge as s
         (scope, charge_id, operation_id, intent_id, currency, net, created_at, account_id)
  select scope, charge_id, operation_id, intent_id, currency, net, created_at, account_id
    from fresh
      on conflict (scope, charge_id) do update
     set operation_id = excluded.operation_id,
         intent_id = excluded.intent_id,
         currency = excluded.currency,
         net = excluded.net,
         created_at = excluded.created_at,
         account_id = excluded.account_id
   where (s.operation_id, s.intent_id, s.currency, s.net, s.created_at, s.account_id)
         is distinct from (excluded.operation_id, excluded.intent_id, excluded.currency, excluded.net,
                           excluded.created_at, excluded.account_id)
), moved as (
  select account_id, currency, created_at, net from fresh
  union all
  select account_id, currency, created_at, -net from known
), accounts as (
  insert into tallyd.spend_account as a (account_id, currency, net)
  select account_id, currency, sum(net)
    from moved
   where account_id is not null
   group by account_id, currency
  having sum(net) <> 0
   order by account_id, currency
      on conflict (account_id, currency) do update
     set net = a.net + excluded.net
)
insert into tallyd.spend_slot as t (currency, slot, net)
select currency, date_bin(interval '15 minutes', created_at, timestamptz '2000-01-01 00:00+00') as slot, sum(net)
  from moved
 group by currency, slot
having sum(net) <> 0
 order by currency, slot
    on conflict (currency, slot) do update
   set net = t.net + excluded.net
