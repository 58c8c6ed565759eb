-- The mirror: what the team's table and the providers say, in one shape per concept.
-- Every provider row carries version_at (the provider's time of the fact) and version_rank (the
-- life-cycle rank that breaks ties inside one second), so that facts may arrive in any order.
-- Both belong to the fact that won; field_versions holds the older versions of fields that the
-- winner was silent about (null never overwrites a known value).

-- A row of the team's own table: one operation as its writer recorded it.
create table tallyd.intent (
  intent_id       text primary key check (char_length(intent_id) <= 600),
  account_id      text not null check (char_length(account_id) <= 255),
  rail            text not null check (rail in ('stripe', 'evm')),
  scope           text not null check (char_length(scope) <= 128),
  kind            text not null default 'charge' check (char_length(kind) <= 64), -- charge, capture, refund
  amount          numeric(78,0) not null,                            -- minor units
  currency        text not null check (char_length(currency) <= 64), -- lower case
  idempotency_key text check (char_length(idempotency_key) <= 600),  -- null: the team keeps none
  state           text not null check (state in ('key_minted', 'in_flight', 'recorded',
                                'failed_retryable', 'failed_terminal', 'reconciling')),
  raw_state       text not null check (char_length(raw_state) <= 255), -- as spelled in the team's table
  charge_id       text check (char_length(charge_id) <= 255),        -- any spelling: pi_, ch_, py_, hash
  response_kind   text not null default 'none'
                  check (response_kind in ('none', 'object', 'error', 'other')),
  fingerprint     text check (char_length(fingerprint) <= 600),
  fingerprint_fit text check (char_length(fingerprint_fit) <= 64),   -- spelling that reproduces it; null: none
  reference       text check (char_length(reference) <= 600),
  payment_id      text check (char_length(payment_id) <= 600),
  customer        text check (char_length(customer) <= 255),
  network         text check (char_length(network) <= 64),
  asset           text check (char_length(asset) <= 128),
  payer           text check (char_length(payer) <= 255),
  payee           text check (char_length(payee) <= 255),
  nonce           text check (char_length(nonce) <= 128),
  valid_before    timestamptz,
  repeat_confirmed boolean not null default false,                   -- a person meant the second one
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  row_hash        text not null check (char_length(row_hash) <= 64),
  -- what the row said when it was first seen recorded; null until then
  recorded_as     jsonb,
  recorded_seen_at timestamptz,
  first_seen_at   timestamptz not null,
  seen_at         timestamptz not null,                              -- snapshot of the read that last changed it
  vanished_at     timestamptz                                        -- null while the row exists
);
create index intent_charge on tallyd.intent (charge_id) where charge_id is not null;
create index intent_key on tallyd.intent (idempotency_key) where idempotency_key is not null;
create index intent_reference on tallyd.intent (reference) where reference is not null;
create index intent_payment_id on tallyd.intent (payment_id) where payment_id is not null;
create index intent_open on tallyd.intent (state, updated_at)
  where state in ('key_minted', 'in_flight', 'failed_retryable', 'reconciling');

-- What is wrong with a row of the team's table: it is set aside, or kept with a remark.
create table tallyd.intent_fault (
  intent_id   text primary key check (char_length(intent_id) <= 600), -- cut where the id itself is too long
  kept        boolean not null,                                      -- false: not in tallyd.intent as it stands now
  faults      jsonb not null,                                        -- [{field, seen, allowed}]
  first_at    timestamptz not null,
  at          timestamptz not null                                   -- last time it was seen so
);

-- A Stripe payment intent: the provider's own view of one attempt to be paid.
create table tallyd.stripe_payment_intent (
  scope           text not null check (char_length(scope) <= 128),
  id              text not null check (char_length(id) <= 255),
  amount          numeric(78,0) not null,
  amount_received numeric(78,0) not null default 0,
  amount_capturable numeric(78,0) not null default 0,
  currency        text not null check (char_length(currency) <= 64),
  status          text not null check (char_length(status) <= 64),   -- open enum: unknown values are kept
  customer        text check (char_length(customer) <= 255),
  payee           text check (char_length(payee) <= 255),            -- destination account of a transfer
  purpose         text check (char_length(purpose) <= 64),           -- hash of the description
  invoice         text check (char_length(invoice) <= 255),
  latest_charge   text check (char_length(latest_charge) <= 255),
  failure_code    text check (char_length(failure_code) <= 128),     -- of the last failed attempt
  cancellation_reason text check (char_length(cancellation_reason) <= 128),
  intent_mark     text check (char_length(intent_mark) <= 600),      -- metadata[metadataKey]
  reference       text check (char_length(reference) <= 600),        -- metadata[referenceKey]
  key_mark        text check (char_length(key_mark) <= 600),         -- a key repeated in the metadata
  owned           text not null default 'yes' check (owned in ('yes', 'no', 'unknown')),
  asynchronous    boolean not null default false,                    -- a method that settles days later
  created_at      timestamptz not null,
  version_at      timestamptz not null,
  version_rank    integer not null,
  -- versions of fields that newer facts left unsaid
  field_versions  jsonb not null default '{}'::jsonb,
  first_seen_at   timestamptz not null default clock_timestamp(),
  seen_at         timestamptz not null default clock_timestamp(),
  missing_since   timestamptz,                                       -- the provider denies it by id
  primary key (scope, id)
);
create index stripe_payment_intent_mark on tallyd.stripe_payment_intent (intent_mark) where intent_mark is not null;
create index stripe_payment_intent_created on tallyd.stripe_payment_intent (scope, created_at);

-- One provider-side movement of money towards the payee, on any rail.
create table tallyd.charge (
  scope           text not null check (char_length(scope) <= 128),
  charge_id       text not null check (char_length(charge_id) <= 255),
  rail            text not null check (rail in ('stripe', 'evm')),
  payment_intent  text check (char_length(payment_intent) <= 255),   -- null: a charge without one
  amount          numeric(78,0) not null,
  amount_captured numeric(78,0) not null default 0,
  amount_refunded numeric(78,0) not null default 0,                  -- the provider's running total
  currency        text not null check (char_length(currency) <= 64),
  status          text not null check (status in ('pending', 'succeeded', 'failed')),
  captured        boolean not null default false,
  refunded        boolean not null default false,                    -- fully
  disputed        boolean not null default false,
  payer           text check (char_length(payer) <= 255),            -- customer, or address
  payee           text check (char_length(payee) <= 255),
  instrument      text check (char_length(instrument) <= 64),        -- hash of the card or account used
  purpose         text check (char_length(purpose) <= 64),
  invoice         text check (char_length(invoice) <= 255),
  transfer        text check (char_length(transfer) <= 255),         -- platform side of a destination charge
  source_transfer text check (char_length(source_transfer) <= 255),  -- mirror side: the same money again
  failure_code    text check (char_length(failure_code) <= 128),
  intent_mark     text check (char_length(intent_mark) <= 600),
  reference       text check (char_length(reference) <= 600),
  key_mark        text check (char_length(key_mark) <= 600),
  owned           text not null default 'yes' check (owned in ('yes', 'no', 'unknown')),
  derived         boolean not null default false,                    -- known only from its payment intent
  created_at      timestamptz not null,
  version_at      timestamptz not null,
  version_rank    integer not null,
  -- versions of fields that newer facts left unsaid
  field_versions  jsonb not null default '{}'::jsonb,
  first_seen_at   timestamptz not null default clock_timestamp(),
  seen_at         timestamptz not null default clock_timestamp(),
  primary key (scope, charge_id)
);
create index charge_payment_intent on tallyd.charge (payment_intent) where payment_intent is not null;
create index charge_mark on tallyd.charge (intent_mark) where intent_mark is not null;
create index charge_reference on tallyd.charge (reference) where reference is not null;
create index charge_key_mark on tallyd.charge (key_mark) where key_mark is not null;
create index charge_created on tallyd.charge (scope, created_at);
create index charge_alike on tallyd.charge (scope, amount, currency, created_at) where status = 'succeeded';

-- Idempotency keys seen in event.request: the provider's only trace from our key to the object.
create table tallyd.object_key (
  scope           text not null check (char_length(scope) <= 128),
  object_id       text not null check (char_length(object_id) <= 255),
  idempotency_key text not null check (char_length(idempotency_key) <= 255),
  event_id        text not null check (char_length(event_id) <= 255),
  at              timestamptz not null,
  primary key (scope, object_id, idempotency_key)
);
create index object_key_key on tallyd.object_key (idempotency_key);

create table tallyd.refund (
  scope           text not null check (char_length(scope) <= 128),
  refund_id       text not null check (char_length(refund_id) <= 255),
  charge_id       text check (char_length(charge_id) <= 255),        -- null: the provider named only the intent
  payment_intent  text check (char_length(payment_intent) <= 255),
  amount          numeric(78,0) not null,
  currency        text not null check (char_length(currency) <= 64),
  status          text not null check (char_length(status) <= 64),
  reason          text check (char_length(reason) <= 128),
  failure_reason  text check (char_length(failure_reason) <= 128),
  created_at      timestamptz not null,
  version_at      timestamptz not null,
  version_rank    integer not null,
  -- versions of fields that newer facts left unsaid
  field_versions  jsonb not null default '{}'::jsonb,
  first_seen_at   timestamptz not null default clock_timestamp(),
  seen_at         timestamptz not null default clock_timestamp(),
  primary key (scope, refund_id)
);
create index refund_charge on tallyd.refund (charge_id);
create index refund_payment_intent on tallyd.refund (payment_intent);

create table tallyd.dispute (
  scope           text not null check (char_length(scope) <= 128),
  dispute_id      text not null check (char_length(dispute_id) <= 255),
  charge_id       text check (char_length(charge_id) <= 255),
  payment_intent  text check (char_length(payment_intent) <= 255),
  amount          numeric(78,0) not null,
  currency        text not null check (char_length(currency) <= 64),
  status          text not null check (char_length(status) <= 64),
  reason          text check (char_length(reason) <= 128),
  refundable      boolean,                                           -- is_charge_refundable; null: not said
  created_at      timestamptz not null,
  version_at      timestamptz not null,
  version_rank    integer not null,
  -- versions of fields that newer facts left unsaid
  field_versions  jsonb not null default '{}'::jsonb,
  first_seen_at   timestamptz not null default clock_timestamp(),
  seen_at         timestamptz not null default clock_timestamp(),
  primary key (scope, dispute_id)
);
create index dispute_charge on tallyd.dispute (charge_id);
