-- Matching: which charge and which intent belongs to which operation. Written by match alone.

create table tallyd.intent_match (
  intent_id    text primary key check (char_length(intent_id) <= 600),
  operation_id text not null check (char_length(operation_id) <= 1300),
  reference    text check (char_length(reference) <= 600)            -- the row's own, else that of its charges
);
create index intent_match_reference on tallyd.intent_match (reference) where reference is not null;
create index intent_match_operation on tallyd.intent_match (operation_id);

create table tallyd.charge_match (
  scope        text not null check (char_length(scope) <= 128),
  charge_id    text not null check (char_length(charge_id) <= 255),
  operation_id text not null check (char_length(operation_id) <= 1300),
  intent_id    text check (char_length(intent_id) <= 600),           -- null: no row of the team's table is its own
  -- charge_id, key, metadata, nonce, payment_id, reference
  basis        text check (char_length(basis) <= 32),
  conflict     jsonb,                                                -- marks that point to different intents
  primary key (scope, charge_id)
);
create index charge_match_operation on tallyd.charge_match (operation_id);
create index charge_match_intent on tallyd.charge_match (intent_id) where intent_id is not null;

-- Objects that changed and are not placed yet. Written by whoever changes the mirror, emptied by match.
create table tallyd.changed (
  kind       text not null check (kind in ('intent', 'charge', 'payment_intent')),
  scope      text not null default '' check (char_length(scope) <= 128),
  id         text not null check (char_length(id) <= 600),
  at         timestamptz not null default clock_timestamp(),
  primary key (kind, scope, id)
);

-- Operations to judge, now or when a grace period ends. Written by match and judge, emptied by judge.
create table tallyd.due (
  operation_id text not null check (char_length(operation_id) <= 1300),
  due_at       timestamptz not null,
  primary key (operation_id, due_at)
);
create index due_at on tallyd.due (due_at);
