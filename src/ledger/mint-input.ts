/** What an operation may be minted with. Not every caller is checked by a compiler. */
import { LedgerError } from "./errors.ts";
import { OPERATIONS } from "./key.ts";
import type { MintInput } from "./mint.ts";

// The ledger writes these itself; given from outside they would go around its checks.
const OF_THE_LEDGER: ReadonlySet<string> = new Set([
  ...["intent_id", "account_id", "operation", "amount", "currency", "idempotency_key", "state"],
  ...["charge_id", "response_json", "fingerprint", "metadata", "created_at", "updated_at"],
]);

/** Throws `invalid` with what was seen and what is allowed. */
export function checkInput(input: MintInput): void {
  const { operation, amount, columns = {} } = input;
  const fault =
    nameFault(input) ?? operationFault(operation) ?? amountFault(amount) ?? columnFault(columns);
  if (fault !== null) throw new LedgerError("invalid", `${fault}; nothing was stored`);
}

function nameFault({ intentId, accountId, currency }: MintInput): string | null {
  const names: readonly (readonly [string, unknown])[] = [
    ["id", intentId],
    ["account", accountId],
    ["currency", currency],
  ];
  for (const [name, value] of names) {
    if (value === "" || value === undefined || value === null) return `the intent has no ${name}`;
    if (typeof value !== "string") return `the intent's ${name} is ${seen(value)}: give a text`;
    const fault = spellingFault(value);
    if (fault !== null) return `the intent's ${name} is ${seen(value)}: ${fault}`;
  }
  return null;
}

/** One name has one spelling, or one purchase would have two rows. */
function spellingFault(value: string): string | null {
  if (value !== value.trim()) return "leave out the blanks around it";
  if (/[\p{Cs}\0]/u.test(value)) return "leave out what is no character";
  return value === value.normalize() ? null : "spell it in Unicode's composed form (NFC)";
}

function amountFault(amount: unknown): string | null {
  const rule = "minor units above zero are allowed, as a bigint (1250n)";
  return typeof amount === "bigint" && amount > 0n
    ? null
    : `the amount is ${seen(amount)}: ${rule}`;
}

function operationFault(operation: MintInput["operation"]): string | null {
  if (operation === undefined || OPERATIONS.includes(operation)) return null;
  return `the operation is ${seen(operation)}: ${OPERATIONS.join(", ")} are allowed`;
}

function columnFault(columns: Readonly<Record<string, unknown>>): string | null {
  const own = Object.keys(columns).filter((name) => OF_THE_LEDGER.has(name));
  if (own.length === 0) return null;
  return `columns has ${own.join(", ")}, which the ledger writes itself: leave it out`;
}

/** A value as it can be recognised: texts in quotes, and what kind the others are. */
function seen(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "bigint" ? `${value}` : `${String(value)} (${typeof value})`;
}
