-- Scopes in which Stripe makes events and no webhook brings them: the events list knows events that are
-- older than the first retries and newer than the last webhook. What the sweep met much later than it was
-- made tells that tallyd was not there, and not that webhooks were silent.
create view tallyd.webhook_silence as
with watched as (
  select s.scope,
         greatest((s.cursor ->> 'startedAt')::timestamptz, s.last_ok_at - interval '3 days') as since,
         -- Stripe delivers within seconds; a quarter of an hour leaves room for its first retries.
         s.last_ok_at - interval '15 minutes' as until
    from tallyd.source s
   where s.source = 'stripe.events'
), heard as (
  select w.scope, max(i.webhook_at) as at
    from watched w
    left join tallyd.inbox i on i.scope = w.scope and i.created_at >= w.since and i.webhook_at is not null
   group by w.scope
)
select w.scope,
       count(*) as missed,
       min(i.created_at) as since
  from watched w
  join heard h using (scope)
  join tallyd.inbox i on i.scope = w.scope and i.created_at >= w.since and i.created_at < w.until
 where i.webhook_at is null
   and i.received_at < i.created_at + interval '1 hour'
   -- A webhook that came later shows that the endpoint lives: no silence, just a miss.
   and (h.at is null or i.created_at > h.at)
 group by w.scope;
