-- Reads of the range; they are counted by whole days in UTC, so a day that the range touches counts whole.
select n.scope, n.endpoint, sum(n.reads) as reads
  from tallyd.read_count n
 where n.day >= (:'from'::timestamptz at time zone 'UTC')::date
   and n.day <= ((:'to'::timestamptz - interval '1 microsecond') at time zone 'UTC')::date
 group by n.scope, n.endpoint
 order by n.scope, n.endpoint
