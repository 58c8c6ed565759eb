import type { Pool } from "pg";
import pg from "pg";

import { withTx } from "../../store/tx.ts";

// Two replicas that start at once would race in the catalogue; any fixed number serves.
const CREATE_LOCK = "hashtextextended('tallyd:own-table', 0)";

/**
 * tallyd's own table for teams that have none: the documented table and what richer writers add
 * (README.md, your table). No check constrains it: what a writer put there is judged by tallyd and
 * told
 * to people, it never stops a payment.
 */
function tableDdl(table: string): string {
  return `
create table if not exists ${table} (
  intent_id       text primary key,                                  -- the operation's own id
  account_id      text not null,                                     -- whose money
  operation       text not null default 'charge',                    -- charge, capture, refund
  amount          numeric(78,0) not null,                            -- minor units
  currency        text not null,                                     -- ISO code, or the token's symbol
  idempotency_key text not null,                                     -- minted once, used by every attempt
  state           text not null default 'key_minted',
  charge_id       text,                                              -- null until the provider answered
  response_json   jsonb,                                             -- the provider's answer
  fingerprint     text,                                              -- hash of the material parameters
  reference       text,                                              -- order, invoice
  customer        text,
  rail            text,                                              -- stripe, evm; null: found out
  network         text,                                              -- CAIP-2, eip155:8453
  asset           text,                                              -- the token's address
  payer           text,
  payee           text,
  nonce           text,                                              -- of the signed authorization
  valid_before    timestamptz,                                       -- its end
  payment_id      text,
  metadata        jsonb,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  unique (account_id, operation, idempotency_key)
)`;
}

/**
 * Creates tallyd's own table under the name that the setting gives. The reader asks for changes in
 * the order of the index every few seconds. Throws what the server says; callers translate it.
 */
export async function createOwnTable(team: Pool, table: string): Promise<void> {
  const quoted = partsOf(table).map((part) => pg.escapeIdentifier(part));
  const name = quoted.join(".");
  await withTx(team, async (tx) => {
    await tx.query(`select pg_advisory_xact_lock(${CREATE_LOCK})`);
    await tx.query(tableDdl(name));
    await tx.query(`create index if not exists ${quoted.at(-1)?.slice(0, -1) ?? ""}_updated"
        on ${name} (updated_at, intent_id)`);
  });
}

/** The parts of a relation's name by SQL's rule: lower case unless quoted. */
function partsOf(table: string): string[] {
  return [...table.matchAll(/"((?:[^"]|"")+)"|([^".]+)/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain?.toLowerCase() ?? "",
  );
}
