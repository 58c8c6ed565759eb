-- What was found, its life, what was told, and what was decided.

create table tallyd.incident (
  id             text primary key check (char_length(id) <= 64),     -- stable: hash of code and subject
  code           text not null check (char_length(code) <= 64),
  subject        text not null check (char_length(subject) <= 1400),
  operation_id   text check (char_length(operation_id) <= 1300),     -- null: about a source, not an operation
  severity       text not null check (severity in ('info', 'warning', 'critical')),
  status         text not null check (status in ('open', 'acknowledged', 'muted', 'closed')),
  basis          text check (char_length(basis) <= 64),
  rail           text check (char_length(rail) <= 16),
  scope          text check (char_length(scope) <= 128),
  intents        text[] not null default '{}',
  charges        text[] not null default '{}',
  amount_at_risk numeric(78,0),                                      -- null: no money is named
  currency       text check (char_length(currency) <= 64),
  occurred_at    timestamptz,
  first_seen     timestamptz not null,
  last_seen      timestamptz not null,
  count          integer not null default 1,                         -- times it was found
  summary        text not null check (char_length(summary) <= 4000),
  advice         text not null check (char_length(advice) <= 4000),
  evidence       jsonb not null default '{}'::jsonb,
  muted_until    timestamptz,
  closed_at      timestamptz,
  closed_by      text check (closed_by in ('facts', 'person')),
  verdict        jsonb,                                              -- the facts a person closed or muted it on
  told           text check (told in ('info', 'warning', 'critical')), -- severity last told; null: never
  unique (code, subject)
);
create index incident_open on tallyd.incident (status) where status <> 'closed';
create index incident_operation on tallyd.incident (operation_id);
create index incident_intents on tallyd.incident using gin (intents) where status <> 'closed';
create index incident_charges on tallyd.incident using gin (charges);

-- The incident's life, append-only.
create table tallyd.incident_entry (
  entry_id    bigint generated always as identity primary key,
  incident_id text not null references tallyd.incident (id),
  at          timestamptz not null,
  actor       text not null check (char_length(actor) <= 128),       -- tallyd, or a person's name
  step        text not null check (step in ('opened', 'worsened', 'eased', 'acknowledged', 'muted', 'unmuted',
                                  'closed', 'reopened', 'corrected', 'reminded')),
  note        text check (char_length(note) <= 4000),
  evidence    jsonb not null default '{}'::jsonb
);
create index incident_entry_incident on tallyd.incident_entry (incident_id, entry_id);

-- Messages to people, committed with the incident that caused them.
create table tallyd.outbox (
  message_id  bigint generated always as identity primary key,
  incident_id text references tallyd.incident (id),                  -- null: not about one incident
  channel     text not null check (channel in ('slack', 'slack_critical', 'log')),
  kind        text not null check (char_length(kind) <= 32),
  severity    text not null check (severity in ('info', 'warning', 'critical')),
  payload     jsonb not null,
  created_at  timestamptz not null,
  due_at      timestamptz not null,
  attempts    integer not null default 0,
  status      text not null default 'pending'
              check (status in ('pending', 'sent', 'uncertain', 'merged', 'dead')),
  sent_at     timestamptz,
  merged_into bigint references tallyd.outbox (message_id),          -- the digest that tells it instead
  last_error  text check (char_length(last_error) <= 2000)
);
create index outbox_due on tallyd.outbox (channel, due_at, message_id) where status in ('pending', 'uncertain');
create index outbox_created on tallyd.outbox (created_at);

-- What is known about each way out: one row per channel that was ever used.
create table tallyd.hook (
  channel         text primary key check (channel in ('slack', 'slack_critical', 'log')),
  last_ok_at      timestamptz,                                       -- null until the first message arrived
  last_try_at     timestamptz,
  failing_since   timestamptz,                                       -- null while healthy
  failures        integer not null default 0,                        -- in a row
  paused_until    timestamptz,                                       -- nothing is sent before
  last_error      text check (char_length(last_error) <= 2000),      -- null while healthy
  last_error_code text check (last_error_code in ('rate_limit', 'dead', 'server', 'network'))
);

-- Decisions about ambiguous intents, append-only.
create table tallyd.resolution (
  resolution_id bigint generated always as identity primary key,
  intent_id     text not null check (char_length(intent_id) <= 600),
  operation_id  text check (char_length(operation_id) <= 1300),
  -- recorded, failed_retryable, failed_terminal, wait, hold, unproven
  decision      text not null check (char_length(decision) <= 64),
  reason        text not null check (char_length(reason) <= 4000),
  from_state    text not null check (char_length(from_state) <= 64),
  to_state      text check (char_length(to_state) <= 64),            -- null: no write was decided
  charge_id     text check (char_length(charge_id) <= 255),
  outcome       text not null check (outcome in ('applied', 'suggested', 'none', 'lost_race', 'refused')),
  proof         jsonb not null,
  contract      jsonb not null,                                      -- the six answers
  decided_at    timestamptz not null
);
create index resolution_intent on tallyd.resolution (intent_id, resolution_id);

-- Where each candidate stands on its ladder of look-ups.
create table tallyd.ladder (
  intent_id  text primary key check (char_length(intent_id) <= 600),
  state      text not null check (char_length(state) <= 64),         -- the state the ladder was started for
  since      timestamptz not null,
  rung       integer not null default 0,
  next_at    timestamptz not null,
  ended_at   timestamptz,                                            -- null while it goes on
  missing    jsonb                                                   -- what could not be proven, at the end
);
create index ladder_due on tallyd.ladder (next_at) where ended_at is null;

-- One replica per job and tick; also the record of the last runs.
create table tallyd.job_run (
  job         text not null check (char_length(job) <= 64),
  tick_at     timestamptz not null,
  replica     text not null check (char_length(replica) <= 128),
  started_at  timestamptz not null default clock_timestamp(),
  finished_at timestamptz,                                           -- null while it runs, or its replica died
  result      jsonb,
  error       text check (char_length(error) <= 2000),
  primary key (job, tick_at)
);
create index job_run_latest on tallyd.job_run (job, started_at desc);
