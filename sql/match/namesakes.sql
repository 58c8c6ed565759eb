-- The charges that rows own, and those that carry the same reference: when a row takes on the reference of
-- its charge, others of that order follow it into its account.
with named as (
  select m.intent_id, m.reference
    from tallyd.intent_match m
   where m.intent_id = any (:'intents'::text[])
)
select m.scope, m.charge_id
  from named n
  join tallyd.charge_match m on m.intent_id = n.intent_id
union
select c.scope, c.charge_id
  from named n
  join tallyd.charge c on c.reference = n.reference
union
select c.scope, c.charge_id
  from named n
  join tallyd.stripe_payment_intent p on p.reference = n.reference
  join tallyd.charge c on c.payment_intent = p.id and c.scope = p.scope
