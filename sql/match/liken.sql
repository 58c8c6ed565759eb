-- The keys by which charges of touched operations may look like others: the same payer, payee, amount,
-- currency and purpose, or the same fingerprint in one account.
update tallyd.charge_match m
   set alike_key = w.alike_key,
       print_key = w.print_key
  from (
         select c.scope, c.charge_id,
                case when coalesce(c.payer, i.customer, c.instrument) is not null
                     then md5(jsonb_build_array(coalesce(c.payer, i.customer, c.instrument), c.payee,
                                                c.amount::text, c.currency, c.purpose)::text) end as alike_key,
                case when i.fingerprint is not null
                     then md5(jsonb_build_array(i.account_id, i.fingerprint, c.amount::text,
                                                c.currency)::text) end as print_key
           from tallyd.charge_fact c
           left join tallyd.intent i on i.intent_id = c.intent_id
          where c.operation_id = any (:'operations'::text[])
       ) w
 where m.scope = w.scope
   and m.charge_id = w.charge_id
   and (m.alike_key, m.print_key) is distinct from (w.alike_key, w.print_key)
