-- The range of a report as two instants, in the wall time of a zone. Without bounds: the last whole day. Without
-- the beginning: the day before the end. Nothing beyond now has happened yet.
with given as (
  select :'zone'::text as zone,
         coalesce(:'from_at'::timestamptz, :'from_day'::timestamp at time zone :'zone') as given_from,
         coalesce(:'to_at'::timestamptz, :'to_day'::timestamp at time zone :'zone') as given_to
), ended as (
  select zone, given_from,
         case
           when given_to is not null   then given_to
           when given_from is not null then :'as_of'::timestamptz
           else date_trunc('day', :'as_of'::timestamptz at time zone zone) at time zone zone
         end as given_to
    from given
)
select coalesce(given_from, (given_to at time zone zone - interval '1 day') at time zone zone) as range_from,
       least(given_to, :'as_of'::timestamptz) as range_to
  from ended
