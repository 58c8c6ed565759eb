-- One row per charge with everything detectors need: effective marks, what was captured, what went
-- back, what is left (net), and the operation it was matched to.
create view tallyd.charge_fact as
select c.scope,
       c.charge_id,
       c.rail,
       c.payment_intent,
       c.amount,
       c.currency,
       c.status,
       c.captured,
       c.disputed,
       coalesce(c.payer, p.customer)                 as payer,
       coalesce(c.payee, p.payee)                    as payee,
       c.asset,
       c.nonce,
       c.instrument,
       coalesce(c.purpose, p.purpose)                as purpose,
       coalesce(c.invoice, p.invoice)                as invoice,
       coalesce(c.intent_mark, p.intent_mark)        as intent_mark,
       coalesce(c.reference, p.reference)            as reference,
       coalesce(c.key_mark, p.key_mark)              as key_mark,
       -- Ownership is decided by whichever object carries metadata: the charge copies it when made.
       case
         when 'yes' in (c.owned, p.owned) then 'yes'
         when 'no' in (c.owned, p.owned)  then 'no'
         else 'unknown'
       end                                           as owned,
       -- The connected account's copy of a destination charge is the same money (case B20).
       c.source_transfer is not null                 as mirrored,
       c.created_at,
       c.position,
       c.first_seen_at,
       c.version_at,
       m.operation_id,
       m.intent_id,
       m.basis,
       m.conflict,
       p.status                                      as payment_status,
       c.status = 'succeeded' and c.captured and c.source_transfer is null as succeeded,
       money.captured                                as amount_captured,
       money.returned                                as amount_returned,
       back.pending                                  as refund_pending,
       lost.amount                                   as dispute_lost,
       coalesce(lost.locked, false)                  as refund_locked,
       greatest(money.captured - money.returned - lost.amount, 0) as net
  from tallyd.charge c
  left join tallyd.charge_match m on m.scope = c.scope and m.charge_id = c.charge_id
  left join tallyd.stripe_payment_intent p on p.scope = c.scope and p.id = c.payment_intent
 cross join lateral (
         select coalesce(sum(r.amount) filter (where r.status = 'succeeded'), 0) as succeeded,
                coalesce(sum(r.amount) filter (where r.status in ('pending', 'requires_action')), 0) as pending,
                -- A refund that failed after the charge was last read still stands in its running total.
                coalesce(sum(r.amount) filter (where r.status in ('failed', 'canceled')
                                                 and r.version_at >= c.version_at), 0) as failed_since
           from tallyd.refund_fact r
          where r.scope = c.scope
            and r.charge_id = c.charge_id
       ) back
 cross join lateral (
         select coalesce(sum(d.amount) filter (where d.status = 'lost'), 0) as amount,
                bool_or(d.refundable is false and d.status not in ('won', 'warning_closed')) as locked
           from tallyd.dispute d
          where d.scope = c.scope
            and d.charge_id = c.charge_id
       ) lost
 cross join lateral (
         select case
                  when not c.captured then 0
                  when c.amount_captured > 0 then c.amount_captured
                  else c.amount
                end as captured,
                -- Refund objects are the truth; the running total covers refunds made elsewhere (case B29).
                greatest(back.succeeded, c.amount_refunded - back.pending - back.failed_since, 0) as refunded
       ) paid
 cross join lateral (
         -- The released rest of a partial capture shows up as refunded although nobody refunded it
         -- (Stripe's documentation), so it is taken off when the total is large enough to hold it.
         select paid.captured,
                case
                  when c.amount > paid.captured and paid.captured > 0
                       and paid.refunded >= c.amount - paid.captured
                  then paid.refunded - (c.amount - paid.captured)
                  else paid.refunded
                end as returned
       ) money;
