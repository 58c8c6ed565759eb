-- What is proven to be completely read: one row per source, scope and range, and one with nulls for a
-- source of which nothing is proven yet.
create view tallyd.coverage_list as
select s.source,
       s.scope,
       lower(r) as covered_from,
       upper(r) as covered_to,
       s.last_ok_at,
       s.failing_since,
       s.failures,
       s.last_error_code,
       s.last_error
  from tallyd.source s
  left join lateral unnest(s.covered) as r on true;
