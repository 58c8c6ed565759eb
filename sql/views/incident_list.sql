-- The incidents with the facts of `tallyd incidents list --json`, for people with SQL. A row whose
-- status is muted and whose muted_until has passed counts as open: views know no time of day.
create view tallyd.incident_list as
select i.id,
       i.code,
       i.severity,
       i.status,
       i.basis,
       i.rail,
       i.scope,
       i.operation_id as operation,
       i.intents,
       i.charges,
       i.amount_at_risk,
       i.currency,
       i.occurred_at,
       i.first_seen,
       i.last_seen,
       i.count,
       i.summary,
       i.advice,
       i.evidence,
       i.muted_until,
       i.closed_at,
       i.closed_by
  from tallyd.incident i;
