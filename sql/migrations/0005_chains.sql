-- The chain rail: what the logs of the watched tokens say, how far they are read, and how the
-- endpoints do. Transfers are kept as they are; charges and refunds are made from them (tallyd.charge,
-- tallyd.refund), so that detectors know no chain.

-- One row per chain. [from_block, final_block] is completely read and at or below finality.
create table tallyd.evm_chain (
  scope          text primary key check (char_length(scope) <= 128), -- eip155:8453
  genesis_hash   text check (char_length(genesis_hash) <= 66),       -- null until it was first read
  from_block     bigint,                                             -- null until the first complete read
  final_block    bigint,
  final_hash     text check (char_length(final_hash) <= 66),         -- the chain as it was read
  final_time     timestamptz,
  head_block     bigint,                                             -- the newest block that was seen
  head_hash      text check (char_length(head_hash) <= 66),
  head_time      timestamptz,
  tip_at         timestamptz,                                        -- when the blocks above finality were last read
  reorganised    bigint not null default 0,                          -- reorganisations above finality that were seen
  stopped_at     timestamptz,                                        -- null while it goes on
  stopped_reason text check (char_length(stopped_reason) <= 2000)
);

-- Every transfer of a watched token from or to a watched address, value 0 left out.
create table tallyd.evm_transfer (
  scope          text not null check (char_length(scope) <= 128),
  tx_hash        text not null check (char_length(tx_hash) = 66),
  log_index      integer not null,                                   -- in its block
  block_number   bigint not null,
  block_hash     text not null check (char_length(block_hash) = 66),
  block_time     timestamptz not null,
  token          text not null check (char_length(token) = 42),      -- the contract's address
  sender         text not null check (char_length(sender) = 42),
  recipient      text not null check (char_length(recipient) = 42),
  value          numeric(78,0) not null,                             -- smallest unit
  nonce          text check (char_length(nonce) = 66),               -- of the authorization that moved it
  memo           text check (char_length(memo) = 66),                -- TransferWithMemo
  -- what it is for us: a charge, money that went back, of a token that is not accepted, or nothing
  role           text not null check (role in ('charge', 'refund', 'other_token', 'none')),
  final          boolean not null,                                   -- at or below finality
  gone_at        timestamptz,                                        -- a reorganisation took it away
  first_seen_at  timestamptz not null default clock_timestamp(),
  primary key (scope, tx_hash, log_index)
);
create index evm_transfer_block on tallyd.evm_transfer (scope, block_number);
create index evm_transfer_tip on tallyd.evm_transfer (scope) where not final and gone_at is null;
create index evm_transfer_nonce on tallyd.evm_transfer (scope, sender, nonce) where nonce is not null;
create index evm_transfer_pair on tallyd.evm_transfer (scope, token, sender, recipient, block_time);

-- What became of a signed authorization (EIP-3009). Used and canceled both make its state true.
create table tallyd.evm_authorization (
  scope          text not null check (char_length(scope) <= 128),
  token          text not null check (char_length(token) = 42),
  authorizer     text not null check (char_length(authorizer) = 42),
  nonce          text not null check (char_length(nonce) = 66),
  outcome        text not null check (outcome in ('used', 'canceled')),
  tx_hash        text not null check (char_length(tx_hash) = 66),
  log_index      integer not null,
  block_number   bigint not null,
  block_hash     text not null check (char_length(block_hash) = 66),
  block_time     timestamptz not null,
  final          boolean not null,
  gone_at        timestamptz,
  primary key (scope, token, authorizer, nonce)
);
create index evm_authorization_nonce on tallyd.evm_authorization (nonce);
create index evm_authorization_tip on tallyd.evm_authorization (scope) where not final and gone_at is null;

-- Transactions that were looked up by hash, because a row names them.
create table tallyd.evm_transaction (
  scope          text not null check (char_length(scope) <= 128),
  tx_hash        text not null check (char_length(tx_hash) = 66),
  status         text not null check (status in ('succeeded', 'reverted', 'pending', 'unknown')),
  block_number   bigint,                                             -- null: in no block
  block_time     timestamptz,
  final          boolean not null default false,
  looked_at      timestamptz not null,
  primary key (scope, tx_hash)
);

-- The endpoints of a chain. Their addresses carry keys, so only a name is kept.
create table tallyd.evm_endpoint (
  scope       text not null check (char_length(scope) <= 128),
  endpoint    text not null check (char_length(endpoint) <= 255),    -- host and place in the list
  state       text not null check (state in ('ok', 'behind', 'failing', 'aside')),
  reason      text check (char_length(reason) <= 2000),              -- null while ok
  since       timestamptz not null,                                  -- of this state
  last_ok_at  timestamptz,
  head_block  bigint,
  failures    integer not null default 0,                            -- in a row
  primary key (scope, endpoint)
);

-- Independent proof of completeness: the balance moved by exactly what was read.
create table tallyd.evm_balance (
  scope         text not null check (char_length(scope) <= 128),
  token         text not null check (char_length(token) = 42),
  address       text not null check (char_length(address) = 42),
  base_block    bigint not null,                                     -- balance at its end, as the chain told it
  base_balance  numeric(78,0) not null,
  checked_block bigint,                                              -- null until the first check
  checked_at    timestamptz,
  expected      numeric(78,0),                                       -- base, plus in, less out
  actual        numeric(78,0),
  primary key (scope, token, address)
);

-- A charge on chain: payment_intent holds the transaction's hash, which several charges may share.
alter table tallyd.charge add column asset text check (char_length(asset) <= 128); -- the token's address
-- Blocks of one second, and transfers of one block, in their order; 0 where seconds are all there is.
alter table tallyd.charge add column position bigint not null default 0;
alter table tallyd.charge add column nonce text check (char_length(nonce) <= 128); -- of its authorization
-- What a row's payment carries when its payment identifier is a challenge of the Machine Payments Protocol.
alter table tallyd.intent add column challenge_nonce text check (char_length(challenge_nonce) <= 66);
alter table tallyd.intent add column challenge_memo text check (char_length(challenge_memo) <= 46); -- head and tail
create index intent_challenge_nonce on tallyd.intent (challenge_nonce) where challenge_nonce is not null;
create index intent_challenge_memo on tallyd.intent (challenge_memo) where challenge_memo is not null;
create index evm_transfer_memo on tallyd.evm_transfer ((left(memo, 32) || right(memo, 14))) where memo is not null;
create index charge_nonce on tallyd.charge (nonce) where nonce is not null;
create index intent_nonce on tallyd.intent (nonce) where nonce is not null;

-- Money that went back on chain names no charge: match finds the one it settles. Written by match alone.
create table tallyd.refund_match (
  scope     text not null check (char_length(scope) <= 128),
  refund_id text not null check (char_length(refund_id) <= 255),
  charge_id text not null check (char_length(charge_id) <= 255),
  basis     text not null check (char_length(basis) <= 32),          -- row, double, amount, payer
  primary key (scope, refund_id)
);
create index refund_match_charge on tallyd.refund_match (scope, charge_id);
