/** A row of the ledger, and what the ledger needs of the outside. */
import type { Clock } from "../core/clock.ts";
import { isIntentState } from "../core/states.ts";
import type { IntentState } from "../core/states.ts";
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import { operationOfKey } from "./key.ts";

/** Kinds of call. Each is an operation of its own, with a row and a key of its own. */
export type Operation = "charge" | "capture" | "refund";

/** Whatever runs a statement: a `pg` pool, or a client inside the caller's transaction. */
export interface Db {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
}

/** Where the rows are and what time it is. */
export interface TableDeps {
  /** The team's table; default `payment_intents`. */
  readonly table?: string;
  /** Default: the database's clock, which all workers share. */
  readonly clock?: Clock;
}

/** A row of the team's table. */
export interface LedgerIntent {
  readonly intentId: string;
  readonly accountId: string;
  readonly operation: Operation;
  /** Minor units. */
  readonly amount: bigint;
  /** Lower case. */
  readonly currency: string;
  readonly idempotencyKey: string;
  readonly state: IntentState;
  /** The provider's object; `null` until one is known. */
  readonly chargeId: string | null;
  readonly response: JsonObject | null;
  readonly fingerprint: string | null;
  readonly reference: string | null;
  readonly customer: string | null;
  /** Further parameters of the call, as they were minted; empty where the table has no place. */
  readonly request: JsonObject;
  /** Columns that richer tables have, as text; see {@link textOf}. */
  readonly columns: Readonly<Record<string, unknown>>;
  /** Unix seconds with their fraction. */
  readonly createdAt: number;
  /** When it was read, in Unix seconds. */
  readonly now: number;
  /** Milliseconds since the row was made. */
  readonly ageMs: number;
  /** Milliseconds since the row last changed. */
  readonly sinceMs: number;
  /** Time of the last change, exactly: what compare-and-set compares. */
  readonly version: string;
}

/** The name of a relation, quoted for use in a statement. Throws `invalid`. */
export function quoteTable(table = "payment_intents"): string {
  const parts = [...table.matchAll(/"((?:[^"]|"")+)"|([^".]+)|(.)/g)]
    .map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain?.toLowerCase() ?? ".")
    .filter((part) => part !== ".");
  if (parts.length === 0 || parts.length > 2) {
    throw new LedgerError("invalid", `"${table}" names no table: NAME or SCHEMA.NAME is allowed`);
  }
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}

/** What is read of a row under the alias `p`, with `now` as a parameter (null: the database's). */
export function rowColumns(now: string): string {
  return `p.intent_id, p.account_id, p.amount::text as amount, p.currency, p.idempotency_key,
          p.state, p.charge_id, p.response_json, to_jsonb(p) - 'response_json' as columns,
          extract(epoch from p.created_at)::text as created_at,
          extract(epoch from p.updated_at)::text as version,
          extract(epoch from coalesce(${now}::timestamptz, clock_timestamp()))::text as now`;
}

const MS_PER_SECOND = 1_000;

/** A row as {@link rowColumns} reads it. Throws `invalid` on states that are not the ledger's. */
export function intentOf(row: Readonly<Record<string, unknown>>): LedgerIntent {
  const columns = objectOf(row["columns"]);
  const intentId = String(row["intent_id"]);
  const state = String(row["state"]);
  if (!isIntentState(state)) {
    throw new LedgerError("invalid", `${intentId} is in the state "${state}", which is unknown`, {
      intentId,
    });
  }
  const idempotencyKey = String(row["idempotency_key"]);
  const now = Number(row["now"]);
  return {
    intentId,
    accountId: String(row["account_id"]),
    operation: operationOf(columns["operation"], idempotencyKey, intentId),
    amount: amountOf(String(row["amount"]), intentId),
    currency: String(row["currency"]).trim().toLowerCase(),
    idempotencyKey,
    state,
    chargeId: textOf(row["charge_id"]),
    response: row["response_json"] === null ? null : objectOf(row["response_json"]),
    fingerprint: textOf(columns["fingerprint"]),
    reference: textOf(columns["reference"]),
    customer: textOf(columns["customer"]),
    request: objectOf(objectOf(columns["metadata"])["request"]),
    columns,
    createdAt: Number(row["created_at"]),
    now,
    ageMs: (now - Number(row["created_at"])) * MS_PER_SECOND,
    sinceMs: (now - Number(row["version"])) * MS_PER_SECOND,
    version: String(row["version"]),
  };
}

function railOf(intent: LedgerIntent): string {
  return textOf(intent.columns["rail"])?.toLowerCase() ?? "stripe";
}

/** Is it paid over x402? */
export function isOnChain(intent: LedgerIntent): boolean {
  return railOf(intent) === "evm";
}

/** Throws `invalid` when the intent is to be paid on another rail than this one. */
export function requireRail(intent: LedgerIntent, rail: "stripe" | "evm"): void {
  const said = railOf(intent);
  if (said === rail) return;
  const how = rail === "evm" ? "payX402 pays evm" : "executePayment pays stripe";
  throw new LedgerError("invalid", `${intent.intentId} is of the rail ${said}, and ${how}`, {
    intentId: intent.intentId,
  });
}

/** A text that is there, or null. */
export function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** An object, empty where the value is none. */
export function objectOf(value: unknown): JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : {};
}

/** Tables without the column tell it by the key, as the first printed design names its keys. */
function operationOf(column: unknown, key: string, intentId: string): Operation {
  const said = textOf(column)?.toLowerCase() ?? operationOfKey(key) ?? "charge";
  if (said === "charge" || said === "capture" || said === "refund") return said;
  throw new LedgerError(
    "invalid",
    `${intentId} is a "${said}": charge, capture and refund are allowed`,
    { intentId },
  );
}

function amountOf(text: string, intentId: string): bigint {
  const match = /^(-?\d+)(?:\.0+)?$/.exec(text);
  if (match?.[1] !== undefined) return BigInt(match[1]);
  throw new LedgerError(
    "invalid",
    `${intentId} has the amount ${text}: whole minor units are allowed`,
    { intentId },
  );
}
