-- Incidents that name one of the operations, rows or charges, the oldest first.
select i.id
  from tallyd.incident i
 where i.operation_id = any (:'operations'::text[])
    or i.intents && :'intents'::text[]
    or i.charges && :'charges'::text[]
 order by i.first_seen, i.id
 limit :'limit'
