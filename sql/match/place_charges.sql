-- The intent and the operation of each charge. The strongest rule wins; among the intents of one rule the
-- one that most other marks support, then the oldest. A mark that points past all of them is a
-- conflict, kept as a finding and never a silent choice (src/README.md, matching).
-- Answers the operations that were left and the ones that were entered.
with work as (
  select c.scope, c.charge_id, c.rail, c.payment_intent, c.created_at,
         coalesce(c.intent_mark, p.intent_mark) as intent_mark,
         coalesce(c.reference, p.reference) as reference,
         coalesce(c.key_mark, p.key_mark) as key_mark
    from unnest(:'scopes'::text[], :'charge_ids'::text[]) as w (scope, charge_id)
    join tallyd.charge c using (scope, charge_id)
    left join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
), candidates as (
  select w.scope, w.charge_id, c.intent_id,
         min(c.rule) as rule, min(c.created_at) as created_at, min(c.preference) as preference,
         count(distinct c.rule) as marks,
         (array_agg(c.basis order by c.rule))[1] as basis
    from work w
   cross join lateral tallyd.candidates_of(w.scope, w.charge_id) c
   group by w.scope, w.charge_id, c.intent_id
), ranked as (
  select scope, charge_id, intent_id, rule, basis,
         min(rule) over (partition by scope, charge_id) as best_rule,
         row_number() over (partition by scope, charge_id
                            order by rule, preference, marks desc, created_at, intent_id) as place
    from candidates
), decided as (
  select scope, charge_id,
         max(intent_id) filter (where place = 1) as intent_id,
         max(basis) filter (where place = 1) as basis,
         jsonb_agg(jsonb_build_object('basis', basis, 'intent', intent_id) order by place)
           filter (where place = 1 or rule > best_rule) as conflict,
         count(*) filter (where rule > best_rule) as strays
    from ranked
   group by scope, charge_id
), keys as (
  select w.scope, w.charge_id, min(k.idempotency_key) as idempotency_key
    from work w
    join tallyd.object_key k
      on k.scope = w.scope and k.object_id in (w.charge_id, w.payment_intent)
     -- Keys that an SDK invents name an attempt and not a purchase.
     and k.idempotency_key not like 'stripe-node-retry-%'
   group by w.scope, w.charge_id
), accounts as (
  -- A reference belongs to an account's name space: it is adopted when one account alone uses it.
  select w.scope, w.charge_id, min(i.account_id) as account_id
    from work w
    join tallyd.intent_match m on m.reference = w.reference
    join tallyd.intent_fact i on i.intent_id = m.intent_id and i.scope = w.scope
   group by w.scope, w.charge_id
  having count(distinct i.account_id) = 1
), wanted as (
  select w.scope, w.charge_id, d.intent_id, d.basis,
         case when d.strays > 0 then d.conflict end as conflict,
         -- It names a row of its own that may be on its way: until then its order number joins it to no other.
         case when n.waits then w.created_at + :'orphan_grace'::interval end as wait_until,
         coalesce(
           m.operation_id,
           case when n.waits then 'intent:' || w.intent_mark end,
           'ref:' || coalesce(a.account_id, '~') || ':' || w.reference,
           'intent:' || w.intent_mark,
           'key:' || w.scope || ':' || coalesce(w.key_mark, k.idempotency_key),
           -- Transfers of one transaction on chain are payments of their own (case B36).
           'payment:' || w.scope || ':' || case when w.rail = 'evm' then w.charge_id
                                                else coalesce(w.payment_intent, w.charge_id) end
         ) as operation_id
    from work w
    left join decided d using (scope, charge_id)
    left join tallyd.intent_match m on m.intent_id = d.intent_id
    left join keys k using (scope, charge_id)
    left join accounts a using (scope, charge_id)
   cross join lateral (
           select d.intent_id is null
                  and w.intent_mark is not null
                  and w.reference is not null
                  and w.created_at + :'orphan_grace'::interval > :'now'::timestamptz as waits
         ) n
), before as (
  select m.operation_id
    from work w
    join tallyd.charge_match m using (scope, charge_id)
), placed as (
  insert into tallyd.charge_match as m (scope, charge_id, operation_id, intent_id, basis, conflict, wait_until)
  select scope, charge_id, operation_id, intent_id, basis, conflict, wait_until
    from wanted
      on conflict (scope, charge_id) do update
     set operation_id = excluded.operation_id,
         intent_id = excluded.intent_id,
         basis = excluded.basis,
         conflict = excluded.conflict,
         wait_until = excluded.wait_until
   where (m.operation_id, m.intent_id, m.basis, m.conflict, m.wait_until)
         is distinct from (excluded.operation_id, excluded.intent_id, excluded.basis, excluded.conflict,
                           excluded.wait_until)
)
select operation_id from before
union
select operation_id from wanted
