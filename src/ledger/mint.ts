/** How an operation gets its row and its key: once, before anything is sent. */
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import { fingerprintOf } from "./fingerprint.ts";
import type { Db, LedgerIntent, Operation, TableDeps } from "./intent.ts";
import { quoteTable } from "./intent.ts";
import { checkedKey, newKey, operationOfKey } from "./key.ts";
import { checkInput } from "./mint-input.ts";
import { nowOf, readIntent } from "./table.ts";

/** An operation that somebody wants once. */
export interface MintInput extends TableDeps {
  /** The operation's own id (order, invoice, cart): the same purchase has the same id for ever. */
  readonly intentId: string;
  /** Whose money. */
  readonly accountId: string;
  /** Default `charge`. */
  readonly operation?: Operation;
  /** Minor units, above zero. */
  readonly amount: bigint;
  /** ISO code, or a token's symbol. */
  readonly currency: string;
  /** Order or invoice; also written into the payment's metadata. */
  readonly reference?: string;
  /** The provider's id of the customer. */
  readonly customer?: string;
  /**
   * Further parameters of the provider's call (`payment_method`, `off_session`, …); for a refund or
   * a capture also the `payment_intent` that it is about. Fixed here, used by every attempt.
   */
  readonly request?: JsonObject;
  /** Further columns of the table, such as `rail` and `payee` for a payment on chain. */
  readonly columns?: Readonly<Record<string, string | Date>>;
  /** A key of your own; default a new one. It is used only when the intent is new. */
  readonly idempotencyKey?: string;
}

/** What was minted. */
export interface Minted {
  readonly intent: LedgerIntent;
  /** False: the operation was minted before, and this is its row and its key. */
  readonly created: boolean;
}

/**
 * Gives an operation its row and its one key, in the transaction that records the business event.
 * The same operation again gets the same row, never a second key. Throws `conflict` when the id or
 * the key stands for something else already, and `invalid`.
 */
export async function mintIntent(tx: Db, input: MintInput): Promise<Minted> {
  const operation = input.operation ?? "charge";
  checkInput(input);
  const given = input.idempotencyKey;
  const key = given === undefined ? newKey(operation) : checkedKey(given, operation);
  const values = await valuesOf(tx, input, { operation, key });
  const names = Object.keys(values);
  const places = names.map((name, index) =>
    name.endsWith("_at") ? `coalesce($${index + 1}, clock_timestamp())` : `$${index + 1}`,
  );
  const inserted = await tx.query(
    `insert into ${quoteTable(input.table)} (${names.map((name) => `"${name}"`).join(", ")})
     values (${places.join(", ")})
     on conflict do nothing
     returning intent_id`,
    Object.values(values),
  );
  const intent = await readMinted(tx, input);
  if (inserted.rows.length === 0) requireSame(intent, input, operation);
  return { intent, created: inserted.rows.length > 0 };
}

/** Values by column. Tables may lack what is optional, as long as nothing would be lost. */
async function valuesOf(
  tx: Db,
  input: MintInput,
  made: { readonly operation: Operation; readonly key: string },
): Promise<Record<string, unknown>> {
  const now = nowOf(input);
  const currency = input.currency.toLowerCase();
  const needed: Record<string, unknown> = {
    intent_id: input.intentId,
    account_id: input.accountId,
    amount: String(input.amount),
    currency,
    idempotency_key: made.key,
    created_at: now,
    updated_at: now,
  };
  const given: Record<string, unknown> = {
    reference: input.reference,
    customer: input.customer,
    metadata: input.request === undefined ? undefined : JSON.stringify({ request: input.request }),
    ...input.columns,
  };
  const optional: Record<string, unknown> = {
    operation: made.operation,
    fingerprint: fingerprintOf({ intentId: input.intentId, amount: input.amount, currency }),
  };
  const columns = await columnsOf(tx, input);
  if (!columns.has("operation")) requireToldByKey(made, input);
  const lost = Object.keys(given).filter((name) => given[name] !== undefined && !columns.has(name));
  if (lost.length > 0) {
    throw new LedgerError(
      "invalid",
      `the table has no column ${lost.join(", ")}: add it, or leave the value out`,
      { intentId: input.intentId },
    );
  }
  const extra: Readonly<Record<string, unknown>> = { ...optional, rail: "stripe", ...given };
  const known = Object.entries(extra);
  return {
    ...needed,
    ...Object.fromEntries(
      known.filter(([name, value]) => value !== undefined && columns.has(name)),
    ),
  };
}

/** A refund that is read as a charge would take the money once more instead of giving it back. */
function requireToldByKey(
  made: { readonly operation: Operation; readonly key: string },
  { intentId }: MintInput,
): void {
  const { operation, key } = made;
  if ((operationOfKey(key) ?? "charge") === operation) return;
  throw new LedgerError(
    "invalid",
    `the table has no column operation, so the key of a ${operation} has to begin with ` +
      `${operation}_: leave the key out, or spell it so; nothing was stored`,
    { intentId },
  );
}

async function columnsOf(tx: Db, input: MintInput): Promise<ReadonlySet<string>> {
  const found = await tx.query(
    `select a.attname as name
       from pg_attribute a
      where a.attrelid = to_regclass($1)
        and a.attnum > 0
        and not a.attisdropped`,
    [quoteTable(input.table)],
  );
  if (found.rows.length > 0) return new Set(found.rows.map((row) => String(row["name"])));
  throw new LedgerError(
    "invalid",
    `there is no table ${quoteTable(input.table)}: create it with the SQL of ledgerTableSql`,
  );
}

async function readMinted(tx: Db, input: MintInput): Promise<LedgerIntent> {
  try {
    return await readIntent({ ...input, db: tx }, input.intentId);
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== "not_found") throw error;
    throw new LedgerError(
      "conflict",
      `the key of ${input.intentId} belongs to another intent: each needs its own`,
      { intentId: input.intentId },
    );
  }
}

/** The same id with other material parameters is another operation, and must never get its row. */
function requireSame(intent: LedgerIntent, input: MintInput, operation: Operation): void {
  const wanted: Readonly<Record<string, unknown>> = {
    account: input.accountId,
    operation,
    amount: String(input.amount),
    currency: input.currency.toLowerCase(),
    reference: input.reference ?? intent.reference,
    customer: input.customer ?? intent.customer,
    request: canonical(input.request ?? intent.request),
    ...textColumns(input),
  };
  const stored: Readonly<Record<string, unknown>> = {
    account: intent.accountId,
    operation: intent.operation,
    amount: String(intent.amount),
    currency: intent.currency,
    reference: intent.reference,
    customer: intent.customer,
    request: canonical(intent.request),
    ...Object.fromEntries(
      Object.keys(textColumns(input)).map((name) => [name, spelled(intent.columns[name])]),
    ),
  };
  const differing = Object.keys(wanted).filter((name) => wanted[name] !== stored[name]);
  if (differing.length === 0) return;
  throw new LedgerError(
    "conflict",
    `${intent.intentId} was minted with another ${differing.join(", ")}: ` +
      "another purchase needs an id of its own",
    { intentId: intent.intentId },
  );
}

function textColumns(input: MintInput): Record<string, unknown> {
  const all = Object.entries(input.columns ?? {});
  const texts = all.filter(([, value]) => typeof value === "string");
  return Object.fromEntries(texts.map(([name, value]) => [name, spelled(value)]));
}

/** Addresses and hashes mean the same in any case: EIP-55 writes a check sum into theirs. */
function spelled(value: unknown): unknown {
  return typeof value === "string" && /^0x[\da-f]+$/i.test(value) ? value.toLowerCase() : value;
}

/** JSON with sorted names: jsonb keeps no order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
