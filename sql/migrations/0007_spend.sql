-- What was charged, added up as it changes, so that a cap over an account or a day costs what changed and not
-- what there is. Kept only while caps are configured. Written by src/store/spend.ts alone, before each judging.

-- What each charge is counted with. One that no longer pays stays with 0, so that its operation still tells
-- which account and day it touches.
create table tallyd.spend_charge (
  scope        text not null check (char_length(scope) <= 128),
  charge_id    text not null check (char_length(charge_id) <= 255),
  operation_id text not null check (char_length(operation_id) <= 1300),
  account_id   text check (char_length(account_id) <= 255),          -- null: nobody knows whose it is
  intent_id    text check (char_length(intent_id) <= 600),
  currency     text not null check (char_length(currency) <= 64),
  net          numeric(78,0) not null check (net >= 0),              -- captured, less refunds and lost disputes
  created_at   timestamptz not null,
  primary key (scope, charge_id)
);
create index spend_charge_operation on tallyd.spend_charge (operation_id);
-- The newest payment of an account, and of a day.
create index spend_charge_account on tallyd.spend_charge (account_id, currency, created_at) where net > 0;
create index spend_charge_created on tallyd.spend_charge (currency, created_at) where net > 0;

create table tallyd.spend_account (
  account_id text not null check (char_length(account_id) <= 255),
  currency   text not null check (char_length(currency) <= 64),
  net        numeric(78,0) not null,
  primary key (account_id, currency)
);

-- Quarters of an hour: every zone's day begins at the beginning of one, also where the clock changes, so that the
-- zone may be another one tomorrow.
create table tallyd.spend_slot (
  currency text not null check (char_length(currency) <= 64),
  slot     timestamptz not null,                                     -- its beginning
  net      numeric(78,0) not null,
  primary key (currency, slot)
);
