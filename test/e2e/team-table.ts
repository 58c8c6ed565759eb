/** The team's table of a black-box test: as the first printed design has it, richer, or mapped. */
import type { Pool } from "pg";

import { createOwnTable } from "../../src/sources/local/own-table.ts";

/**
 * `seed`: integer amounts, char(3), nothing optional. `own`: tallyd's superset. `loose`: the
 * superset without its keys, so that writers can do what they should not.
 */
export type TableKind = "seed" | "own" | "loose" | "none";

export interface RowInput {
  readonly id: string;
  readonly state: string;
  readonly account?: string;
  readonly amount?: number | bigint;
  readonly currency?: string;
  readonly key?: string;
  readonly charge?: string;
  readonly response?: unknown;
  /** Age of created_at. */
  readonly secondsAgo?: number;
  /** Age of updated_at; default that of created_at. */
  readonly updatedSecondsAgo?: number;
  /** Columns of the richer tables. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** A row as the team sees it; amounts as strings. */
export interface TeamRow {
  readonly intent_id: string;
  readonly state: string;
  readonly amount: string;
  readonly charge_id: string | null;
  readonly response_json: unknown;
  readonly updated_at: Date;
}

// Exactly as printed in the article that the table comes from.
const SEED_DDL = `CREATE TABLE payment_intents (
    intent_id        TEXT PRIMARY KEY,
    account_id       TEXT NOT NULL,
    amount           INTEGER NOT NULL,
    currency         CHAR(3) NOT NULL,
    idempotency_key  TEXT NOT NULL UNIQUE,
    state            TEXT NOT NULL DEFAULT 'key_minted',
    charge_id        TEXT,
    response_json    JSONB,
    created_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at       TIMESTAMPTZ NOT NULL DEFAULT now()
)`;

const LOOSE_DDL = `create table payment_intents (
    intent_id text, account_id text, operation text default 'charge', amount numeric, currency text,
    idempotency_key text, state text, charge_id text, response_json jsonb, fingerprint text,
    reference text, customer text, payment_id text, metadata jsonb,
    created_at timestamptz default now(), updated_at timestamptz default now()
)`;

const DEFAULT_AGE_SECONDS = 900;

/** Makes an empty `payment_intents` of that kind in the schema public. */
export async function makeTable(pool: Pool, kind: TableKind): Promise<void> {
  await pool.query("drop table if exists public.payment_intents");
  if (kind === "seed") await pool.query(SEED_DDL);
  if (kind === "loose") await pool.query(LOOSE_DDL);
  if (kind === "own") await createOwnTable(pool, "public.payment_intents");
}

/** Inserts one row as a team's writer would. */
export async function insertRow(pool: Pool, kind: TableKind, input: RowInput): Promise<void> {
  const { secondsAgo = DEFAULT_AGE_SECONDS, amount = 2_000, response } = input;
  const now = await pool.query<{ at: Date }>("select now() as at");
  const at = now.rows[0]?.at.getTime() ?? 0;
  const columns: Record<string, unknown> = {
    intent_id: input.id,
    account_id: input.account ?? "A",
    amount: String(amount),
    currency: input.currency ?? "usd",
    idempotency_key: input.key ?? `key-${input.id}`,
    state: input.state,
    charge_id: input.charge ?? null,
    response_json: response === undefined ? null : JSON.stringify(response),
    created_at: new Date(at - secondsAgo * 1_000),
    updated_at: new Date(at - (input.updatedSecondsAgo ?? secondsAgo) * 1_000),
    ...(kind === "seed" ? {} : input.more),
  };
  const names = Object.keys(columns);
  const places = names.map((_, index) => `$${String(index + 1)}`);
  await pool.query(
    `insert into public.payment_intents (${names.join(", ")}) values (${places.join(", ")})`,
    Object.values(columns),
  );
}

/** The team's rows by id; nothing when there is no table. */
export async function readRows(pool: Pool, kind: TableKind): Promise<Record<string, TeamRow>> {
  if (kind === "none") return {};
  const found = await pool.query<TeamRow>(
    `select intent_id, state, amount::text as amount, charge_id, response_json, updated_at
       from public.payment_intents`,
  );
  return Object.fromEntries(found.rows.map((row) => [row.intent_id, row]));
}
