-- Incidents that began, came back or ended in the range, each once per what happened to it.
with happened as (
  select distinct
         case e.step when 'corrected' then 'closed' else e.step end as what,
         e.incident_id
    from tallyd.incident_entry e
   where e.step in ('opened', 'reopened', 'closed', 'corrected')
     and e.at >= :'from'::timestamptz
     and e.at < :'to'::timestamptz
)
select h.what, i.severity, count(*)::integer as number,
       (array_agg(i.id order by i.first_seen desc, i.id))[1:100] as ids
  from happened h
  join tallyd.incident i on i.id = h.incident_id
 group by h.what, i.severity
 order by h.what, i.severity
