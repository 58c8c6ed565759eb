-- Other rows with the nonce of a row, and the charge that is their own.
select o.intent_id, o.state,
       (select m.charge_id
          from tallyd.charge_match m
          join tallyd.charge c using (scope, charge_id)
         where m.intent_id = o.intent_id
           and c.status <> 'failed'
         order by m.charge_id
         limit 1) as charge_id
  from tallyd.intent_fact i
  join tallyd.intent_fact o on o.scope = i.scope and o.nonce = i.nonce and o.pays
 where i.intent_id = :'intent'
   and o.intent_id <> i.intent_id
   and (o.payer is null or i.payer is null or o.payer = i.payer)
 order by o.created_at, o.intent_id
 limit :'limit'
