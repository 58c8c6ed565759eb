import type { IntentColumns } from "../../core/settings.ts";

/** Name of a field of an intent, as the mapping spells it. */
export type IntentField = keyof IntentColumns;

/** How a field's value is read. */
export type FieldKind = "text" | "amount" | "time" | "response" | "yes/no";

export interface FieldRule {
  /** Column of the documented table or of tallyd's superset; nothing else is guessed. */
  readonly column: string;
  readonly kind: FieldKind;
  /** A table without it cannot be used. */
  readonly mandatory: boolean;
  /** What is weaker without it, for `doctor`; empty for mandatory fields. */
  readonly weaker: string;
  /** Means something for payments on a chain only. */
  readonly onChain: boolean;
}

function mandatory(column: string, kind: FieldKind): FieldRule {
  return { column, kind, mandatory: true, weaker: "", onChain: false };
}

function optional(column: string, weaker: string, kind: FieldKind = "text"): FieldRule {
  return { column, kind, mandatory: false, weaker, onChain: false };
}

function onChain(column: string, weaker: string, kind: FieldKind = "text"): FieldRule {
  return { column, kind, mandatory: false, weaker, onChain: true };
}

const ON_CHAIN = "matters on chain only";

/** Every field, in the order in which they are read. */
export const FIELDS: Readonly<Record<IntentField, FieldRule>> = {
  intentId: mandatory("intent_id", "text"),
  accountId: mandatory("account_id", "text"),
  amount: mandatory("amount", "amount"),
  currency: mandatory("currency", "text"),
  state: mandatory("state", "text"),
  createdAt: mandatory("created_at", "time"),
  updatedAt: optional(
    "updated_at",
    "changes are found by full sweeps alone, and writes compare the whole row instead of its time",
    "time",
  ),
  idempotencyKey: optional(
    "idempotency_key",
    "no matching by key, no key_reuse and no retry_horizon_exceeded",
  ),
  chargeId: optional(
    "charge_id",
    "no matching by charge id, no duplicate_charge_id; matching rests on metadata and keys",
  ),
  response: optional(
    "response_json",
    "failed rows cannot show that the provider said so, so each of them is looked up",
    "response",
  ),
  operation: optional("operation", "every row counts as a charge; captures and refunds look alike"),
  fingerprint: optional("fingerprint", "no comparison of stored fingerprints"),
  reference: optional(
    "reference",
    "no double_charge by reference across intents, and similar charges cannot be told apart by it",
  ),
  paymentId: onChain("payment_id", ON_CHAIN),
  customer: optional("customer", "similar charges are compared without the customer"),
  rail: onChain("rail", "the rail is taken from the network and the charge id"),
  network: onChain("network", ON_CHAIN),
  asset: onChain("asset", ON_CHAIN),
  payer: onChain("payer", ON_CHAIN),
  payee: optional("payee", "payees are not compared with the provider's"),
  nonce: onChain("nonce", ON_CHAIN),
  validBefore: onChain("valid_before", ON_CHAIN, "time"),
  repeatConfirmed: optional(
    "repeat_confirmed",
    "a repeat that a person meant is told by closing its incident",
    "yes/no",
  ),
};

/** The names of all fields. */
export const FIELD_NAMES = Object.keys(FIELDS) as readonly IntentField[];
