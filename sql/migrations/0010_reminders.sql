-- Critical incidents that people are reminded of until somebody acknowledges them. Written by
-- src/store/reminders.ts alone: with each message about one, and by the job.
create table tallyd.reminder (
  incident_id text primary key references tallyd.incident (id),
  due_at      timestamptz not null,
  anchor_at   timestamptz not null,                                  -- the news that the waits are counted from
  facts       jsonb not null                                         -- what the last message said: what changed since?
);
create index reminder_due on tallyd.reminder (due_at);

-- What is open already is told again half an hour from now, as if it had been told now.
insert into tallyd.reminder (incident_id, due_at, anchor_at, facts)
select id, now() + interval '30 minutes', now(),
       jsonb_build_object('charges', cardinality(charges), 'amountAtRisk', amount_at_risk::text,
                          'currency', currency, 'count', count)
  from tallyd.incident
 where status in ('open', 'muted')
   and severity = 'critical'
   and told is not null;
