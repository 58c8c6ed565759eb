/** The statements about the ledger's rows. Every change is a compare-and-set. */
import type { IntentState } from "../core/states.ts";
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import { intentOf, quoteTable, rowColumns } from "./intent.ts";
import type { Db, LedgerIntent, TableDeps } from "./intent.ts";
import { field } from "./stripe-client.ts";

/** Whatever holds the rows. */
export type RowDeps = TableDeps & { readonly db: Db };

/** What a change writes; what is left out stays. */
export interface Change {
  readonly to: IntentState;
  readonly chargeId?: string | null;
  readonly response?: JsonObject;
  /** Columns of a payment on chain; null empties one. */
  readonly columns?: Partial<Record<ChainColumn, string | Date | null>>;
  /** Merged into the column `metadata`. */
  readonly metadata?: JsonObject;
}

const CHAIN_COLUMNS = ["payer", "nonce", "valid_before", "payment_id"] as const;
type ChainColumn = (typeof CHAIN_COLUMNS)[number];

/**
 * The DDL of a table for the ledger: the documented `payment_intents` and the columns that refunds,
 * payments on chain and tallyd's matching use. Run it in a migration of your own.
 */
export function ledgerTableSql(table?: string): string {
  const name = quoteTable(table);
  const index = (name.split(".").at(-1) ?? "").slice(0, -1);
  return `create table if not exists ${name} (
  intent_id       text primary key,                    -- the operation's own id
  account_id      text not null,                       -- whose money
  operation       text not null default 'charge',      -- charge, capture, refund
  amount          numeric(78,0) not null,              -- minor units
  currency        text not null,                       -- ISO code, or the token's symbol
  idempotency_key text not null,                       -- minted once, used by every attempt
  state           text not null default 'key_minted',
  charge_id       text,
  response_json   jsonb,
  fingerprint     text,                                -- hash of the material parameters
  reference       text,                                -- order, invoice
  customer        text,
  rail            text,                                -- stripe, evm
  network         text,                                -- CAIP-2, eip155:8453
  asset           text,                                -- the token's address
  payer           text,
  payee           text,
  nonce           text,                                -- of the signed authorization
  valid_before    timestamptz,                         -- its end
  payment_id      text,
  metadata        jsonb,                               -- parameters of the call, signed payment
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  unique (account_id, operation, idempotency_key)
);
create index if not exists ${index}_updated" on ${name} (updated_at, intent_id);
`;
}

// The statement was rolled back as a whole for the sake of another one; a few turns are enough.
const LOST_A_RACE: ReadonlySet<unknown> = new Set(["40001", "40P01"]);
const RACES_MAX = 5;
// Syntax, names and rights (PostgreSQL, "Error Codes"): it will not get better by itself.
const MISTAKE = /^(?:42|3F)/;

/**
 * Runs one statement. Throws `unknown` when the database does not answer: what it changed, or what
 * the provider did before, is there or not, and the next call finds out.
 */
async function ask(
  { db }: RowDeps,
  intentId: string,
  text: string,
  values: unknown[],
): Promise<Awaited<ReturnType<Db["query"]>>> {
  for (let races = 0; ; races += 1) {
    try {
      return await db.query(text, values);
    } catch (error) {
      const code = field(error, "code");
      if (LOST_A_RACE.has(code) && races < RACES_MAX) continue;
      const message = error instanceof Error ? error.message : String(error);
      throw new LedgerError("unknown", `${intentId}: the table could not be asked: ${message}`, {
        intentId,
        retryAfterMs: typeof code === "string" && MISTAKE.test(code) ? null : ASK_AGAIN_MS,
        cause: error,
      });
    }
  }
}

// A restart or a failover takes seconds.
const ASK_AGAIN_MS = 5_000;

/** The row of an intent. Throws `not_found`: a row of an open transaction is not there yet. */
export async function readIntent(deps: RowDeps, intentId: string): Promise<LedgerIntent> {
  const found = await ask(
    deps,
    intentId,
    `select ${rowColumns("$2")}
       from ${quoteTable(deps.table)} p
      where p.intent_id = $1`,
    [intentId, nowOf(deps)],
  );
  const [row] = found.rows;
  if (row !== undefined) return intentOf(row);
  throw new LedgerError(
    "not_found",
    `no intent ${intentId} is committed: mint it with its business event first`,
    { intentId },
  );
}

/** The caller's time, or null for the database's. */
export function nowOf(deps: TableDeps): Date | null {
  return deps.clock?.now() ?? null;
}

/**
 * Changes the row if it is still exactly the one that was read; `null`: somebody else was faster.
 * The time of change always grows, so no two states of a row share a version.
 */
export async function moveIntent(
  deps: RowDeps,
  intent: LedgerIntent,
  change: Change,
): Promise<LedgerIntent | null> {
  return changed(deps, intent, change, {
    where: "p.state = $7 and extract(epoch from p.updated_at) = $8::numeric",
    values: [intent.state, intent.version],
  });
}

// Provider success beats every local failure, except one that somebody may have acted on.
const RECORDABLE: readonly IntentState[] = [
  "key_minted",
  "in_flight",
  "failed_retryable",
  "reconciling",
];

/** Records a success that is proven, whatever others made of the row in the meantime. */
export async function recordAnyway(
  deps: RowDeps,
  intent: LedgerIntent,
  change: Change,
): Promise<LedgerIntent | null> {
  return changed(deps, intent, change, {
    where: "p.state = any ($7::text[])",
    values: [RECORDABLE],
  });
}

async function changed(
  deps: RowDeps,
  intent: LedgerIntent,
  change: Change,
  guard: { readonly where: string; readonly values: readonly unknown[] },
): Promise<LedgerIntent | null> {
  const values: unknown[] = [];
  const place = (value: unknown): string => `$${6 + guard.values.length + values.push(value)}`;
  const sets = CHAIN_COLUMNS.flatMap((name) => {
    const value = change.columns?.[name];
    return value === undefined ? [] : [`${name} = ${place(value)},`];
  });
  if (change.metadata !== undefined) {
    const merged = place(JSON.stringify(change.metadata));
    sets.push(`metadata = coalesce(p.metadata, '{}') || ${merged}::jsonb,`);
  }
  const found = await ask(
    deps,
    intent.intentId,
    `update ${quoteTable(deps.table)} as p
        set state = $3,
            ${sets.join(" ")}
            charge_id = coalesce($4, p.charge_id),
            response_json = coalesce($5::jsonb, p.response_json),
            updated_at = greatest(coalesce($6::timestamptz, clock_timestamp()),
                                  p.updated_at + interval '1 microsecond')
      where p.intent_id = $1
        and p.idempotency_key = $2
        and ${guard.where}
  returning ${rowColumns("$6")}`,
    [
      intent.intentId,
      intent.idempotencyKey,
      change.to,
      change.chargeId ?? null,
      change.response === undefined ? null : JSON.stringify(change.response),
      nowOf(deps),
      ...guard.values,
      ...values,
    ],
  );
  const [row] = found.rows;
  return row === undefined ? null : intentOf(row);
}

/**
 * Throws `invalid` inside an open transaction: a mark that is not committed before the money moves
 * is gone after a crash. Asked right after a change, when an open transaction has an id.
 */
export async function requireCommitted(deps: RowDeps, intentId: string): Promise<void> {
  const text = "select pg_current_xact_id_if_assigned() is not null as open";
  const found = await ask(deps, intentId, text, []);
  if (found.rows[0]?.["open"] !== true) return;
  throw new LedgerError(
    "invalid",
    "the ledger was given a client inside a transaction: give it the pool; nothing was sent",
    { intentId },
  );
}
