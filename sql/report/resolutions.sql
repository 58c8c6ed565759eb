-- Decisions of the range by what was decided and what became of it, with the newest rows that they are about.
with decided as (
  select r.decision, r.outcome, r.intent_id, count(*) as number, max(r.resolution_id) as newest
    from tallyd.resolution r
   where r.decided_at >= :'from'::timestamptz
     and r.decided_at < :'to'::timestamptz
   group by r.decision, r.outcome, r.intent_id
)
select d.decision, d.outcome, sum(d.number)::integer as number, count(*)::integer as rows,
       (array_agg(d.intent_id order by d.newest desc))[1:(:'limit'::integer)] as intents
  from decided d
 group by d.decision, d.outcome
 order by d.decision, d.outcome
