-- Money of a range per currency; on chain per network too, because one symbol has other decimals elsewhere.
-- Everything counts where it was made: rows and charges by their creation, money that went back by its own.
with recorded as (
  select i.rail, case i.rail when 'evm' then i.scope end as network, i.currency,
         count(*) as number, sum(i.amount) as amount
    from tallyd.intent_fact i
   where i.state = 'recorded'
     and i.pays
     and i.created_at >= :'from'::timestamptz
     and i.created_at < :'to'::timestamptz
   group by 1, 2, 3
), charged as (
  select c.rail, case c.rail when 'evm' then c.scope end as network, c.currency,
         count(*) as number, sum(c.amount_captured) as amount,
         count(*) filter (where c.intent_id is null) as number_without_row,
         sum(c.amount_captured) filter (where c.intent_id is null) as amount_without_row
    from tallyd.charge_fact c
   where c.scope = any (:'scopes'::text[])
     and c.created_at >= :'from'::timestamptz
     and c.created_at < :'to'::timestamptz
     and c.succeeded
     -- Somebody else's payments on the same account.
     and c.owned <> 'no'
   group by 1, 2, 3
), returned as (
  select case when r.scope like 'eip155:%' then 'evm' else 'stripe' end as rail,
         case when r.scope like 'eip155:%' then r.scope end as network, r.currency, r.amount, false as lost
    from tallyd.refund r
    left join tallyd.refund_match m on m.scope = r.scope and m.refund_id = r.refund_id
    left join tallyd.charge c on c.scope = r.scope and c.charge_id = coalesce(r.charge_id, m.charge_id)
   where r.status = 'succeeded'
     and r.created_at >= :'from'::timestamptz
     and r.created_at < :'to'::timestamptz
     and c.owned is distinct from 'no'
     and c.source_transfer is null
     -- A transfer to a payer that settles no charge of ours is no refund.
     and (r.scope not like 'eip155:%' or m.charge_id is not null)
  union all
  select 'stripe', null, d.currency, d.amount, true
    from tallyd.dispute d
    left join tallyd.charge c on c.scope = d.scope and c.charge_id = d.charge_id
   where d.status = 'lost'
     and d.created_at >= :'from'::timestamptz
     and d.created_at < :'to'::timestamptz
     and c.owned is distinct from 'no'
     and c.source_transfer is null
), back as (
  select r.rail, r.network, r.currency,
         count(*) filter (where not r.lost) as refunds,
         coalesce(sum(r.amount) filter (where not r.lost), 0) as refunded,
         count(*) filter (where r.lost) as disputes,
         coalesce(sum(r.amount) filter (where r.lost), 0) as lost
    from returned r
   group by 1, 2, 3
), currencies as (
  select rail, network, currency from recorded
  union
  select rail, network, currency from charged
  union
  select rail, network, currency from back
)
select n.rail, n.network, n.currency,
       coalesce(i.number, 0)::integer as recorded_count, coalesce(i.amount, 0) as recorded,
       coalesce(c.number, 0)::integer as charged_count, coalesce(c.amount, 0) as charged,
       coalesce(c.number_without_row, 0)::integer as without_row_count,
       coalesce(c.amount_without_row, 0) as without_row,
       coalesce(b.refunds, 0)::integer as refunded_count, coalesce(b.refunded, 0) as refunded,
       coalesce(b.disputes, 0)::integer as lost_count, coalesce(b.lost, 0) as lost,
       coalesce(c.amount, 0) - coalesce(b.refunded, 0) - coalesce(b.lost, 0) as net
  from currencies n
  left join recorded i
    on i.rail = n.rail and i.network is not distinct from n.network and i.currency = n.currency
  left join charged c
    on c.rail = n.rail and c.network is not distinct from n.network and c.currency = n.currency
  left join back b
    on b.rail = n.rail and b.network is not distinct from n.network and b.currency = n.currency
 order by n.rail desc, n.network nulls first, n.currency
