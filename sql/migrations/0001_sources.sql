-- What is read, how far it is proven to be read, and what still has to be fetched.

-- One row per source and scope. A cursor and a coverage range move only in the transaction
-- that stored what was read.
create table tallyd.source (
  source          text not null check (char_length(source) <= 64),   -- local, stripe.events, stripe.charges …
  scope           text not null check (char_length(scope) <= 128),   -- platform/test, acct_1/live, eip155:8453
  cursor          jsonb not null default '{}'::jsonb,                -- the source's own bookmark
  covered         tstzmultirange not null default '{}'::tstzmultirange, -- time PROVEN to be completely read
  last_ok_at      timestamptz,                                       -- null until the first complete read
  last_error      text check (char_length(last_error) <= 2000),      -- null while healthy
  last_error_code text check (char_length(last_error_code) <= 64),   -- auth, rate_limit, network, shape …
  failing_since   timestamptz,                                       -- null while healthy
  failures        integer not null default 0,                        -- in a row
  primary key (source, scope)
);

-- Received and swept events in their reduced form: an allow-list of fields, no personal data.
create table tallyd.inbox (
  scope           text not null check (char_length(scope) <= 128),
  event_id        text not null check (char_length(event_id) <= 255),
  type            text not null check (char_length(type) <= 255),
  api_version     text check (char_length(api_version) <= 64),       -- null: the event did not say
  created_at      timestamptz not null,                              -- the provider's clock, whole seconds
  object_id       text check (char_length(object_id) <= 255),        -- null: the event is about no object
  object_type     text check (char_length(object_type) <= 64),
  idempotency_key text check (char_length(idempotency_key) <= 255),  -- event.request.idempotency_key
  request_id      text check (char_length(request_id) <= 255),
  body            jsonb,                                             -- reduced data.object; null once pruned
  via             text not null check (via in ('webhook', 'sweep')), -- how it came first
  webhook_at      timestamptz,                                       -- null: no webhook ever brought it
  received_at     timestamptz not null default clock_timestamp(),
  deliveries      integer not null default 1,
  status          text not null default 'pending'
                  check (status in ('pending', 'done', 'error', 'dead', 'ignored')),
  attempts        integer not null default 0,
  next_at         timestamptz not null default clock_timestamp(),
  last_error      text check (char_length(last_error) <= 2000),
  done_at         timestamptz,
  primary key (scope, event_id)
);
create index inbox_due on tallyd.inbox (next_at) where status in ('pending', 'error');
create index inbox_object on tallyd.inbox (scope, object_id);
create index inbox_created on tallyd.inbox (scope, created_at);

-- Objects that must be read by id: unknown shapes, contradictions, last looks.
create table tallyd.refetch (
  scope       text not null check (char_length(scope) <= 128),
  object_id   text not null check (char_length(object_id) <= 255),
  reason      text not null check (char_length(reason) <= 200),
  due_at      timestamptz not null default clock_timestamp(),
  attempts    integer not null default 0,
  status      text not null default 'pending' check (status in ('pending', 'missing', 'dead')),
  last_error  text check (char_length(last_error) <= 2000),
  first_at    timestamptz not null default clock_timestamp(),
  primary key (scope, object_id)
);
create index refetch_due on tallyd.refetch (due_at) where status = 'pending';

-- A direct look at the system of record, kept as proof for absence verdicts.
create table tallyd.look (
  source     text not null check (char_length(source) <= 64),        -- local or stripe
  scope      text not null check (char_length(scope) <= 128),
  subject    text not null check (char_length(subject) <= 600),      -- the id or marks that were looked up
  looked_at  timestamptz not null,
  found      boolean not null,
  primary key (source, scope, subject)
);

-- Provider reads per day, for the budget.
create table tallyd.read_count (
  day      date not null,
  scope    text not null check (char_length(scope) <= 128),
  endpoint text not null check (char_length(endpoint) <= 64),
  reads    bigint not null default 0,
  primary key (day, scope, endpoint)
);

-- Things seen that are counted and not stored: other mode, unknown account, bad signatures.
create table tallyd.tally (
  name    text not null check (char_length(name) <= 64),
  scope   text not null default '' check (char_length(scope) <= 128),
  total   bigint not null default 0,
  streak  bigint not null default 0,                                 -- in a row, reset by a success
  last_at timestamptz,
  detail  jsonb not null default '{}'::jsonb,
  primary key (name, scope)
);
