-- Rows of the team's table by the state that they have now: those made in the range, and all of them.
select i.state,
       (count(*) filter (where i.created_at >= :'from'::timestamptz
                           and i.created_at < :'to'::timestamptz))::integer as made,
       count(*)::integer as standing
  from tallyd.intent_fact i
 group by i.state
 order by i.state
