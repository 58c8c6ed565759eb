-- What is not closed, by severity and age; a mute that has run out is open.
select i.severity,
       case
         when i.status = 'muted' and i.muted_until <= :'as_of'::timestamptz then 'open'
         else i.status
       end as status,
       case
         when i.first_seen > :'as_of'::timestamptz - interval '1 hour' then 'hour'
         when i.first_seen > :'as_of'::timestamptz - interval '1 day'  then 'day'
         when i.first_seen > :'as_of'::timestamptz - interval '7 days' then 'week'
         else 'older'
       end as age,
       count(*)::integer as number,
       (array_agg(i.id order by i.first_seen, i.id))[1:100] as ids
  from tallyd.incident i
 where i.status <> 'closed'
 group by 1, 2, 3
 order by 1, 2, 3
