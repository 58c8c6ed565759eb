-- Ways out beside Slack and the log: a signed webhook, and PagerDuty. Programs listen there, so that
-- the messages about one incident must arrive in their order.
alter table tallyd.outbox drop constraint outbox_channel_check;
alter table tallyd.outbox add constraint outbox_channel_check
      check (channel in ('slack', 'slack_critical', 'log', 'webhook', 'pagerduty'));
alter table tallyd.hook drop constraint hook_channel_check;
alter table tallyd.hook add constraint hook_channel_check
      check (channel in ('slack', 'slack_critical', 'log', 'webhook', 'pagerduty'));

-- What was said about an incident on such a way, and whether an earlier word still waits.
create index outbox_incident on tallyd.outbox (incident_id, channel, message_id)
 where channel in ('webhook', 'pagerduty');
