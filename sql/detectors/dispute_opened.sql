--! title: A payment is disputed
--! severity: critical
--! needs: charges
--! advice: Answer the dispute at the provider before its deadline. Do not refund a charge whose dispute forbids it: the money would go back twice.
--
-- A dispute on a charge that we know. An inquiry takes no money and is a remark; a won or withdrawn one closes by
-- facts,
-- a lost one stays until a person closes it (case B30). Reason duplicate is late evidence of a double charge.
select c.operation_id as subject,
       c.operation_id,
       case when d.status like 'warning%' then 'info' end as severity,
       case when d.reason = 'duplicate' then 'duplicate' else 'dispute' end as basis,
       c.rail,
       c.scope,
       case when c.intent_id is null then '{}' else array[c.intent_id] end as intents,
       array[c.charge_id] as charges,
       d.amount as amount_at_risk,
       d.currency,
       d.created_at as occurred_at,
       format('%s is disputed (%s, %s)', c.charge_id, coalesce(d.reason, 'no reason given'), d.status) as summary,
       case when d.refundable then 'It is an inquiry or still refundable: a refund now ends it.' end as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'dispute', d.dispute_id, 'charge', c.charge_id, 'status', d.status, 'reason', d.reason,
         'refundable', d.refundable, 'amount', d.amount::text)) as evidence,
       null::jsonb as look
  from tallyd.charge_fact c
  join tallyd.dispute d on d.scope = c.scope and d.charge_id = c.charge_id
 where c.operation_id = any (:'operations'::text[])
   and c.owned <> 'no'
   -- A row on its way names the operation; until then it would be told under another name.
   and (c.intent_id is not null or c.created_at + :'orphan_grace'::interval <= :'as_of'::timestamptz)
   and d.status not in ('won', 'warning_closed', 'charge_refunded', 'prevented')
 order by subject, d.dispute_id
