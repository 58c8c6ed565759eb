/**
 * The four provider tables of the mirror: their columns, how each is merged, and how a fact becomes
 * a statement about a row.
 */
import type {
  ChargeFact,
  DisputeFact,
  Ownership,
  PaymentIntentFact,
  RefundFact,
} from "../core/facts.ts";
import type { Order, Rule, Statement, Value } from "./mirror-merge.ts";

/** A column of a mirror table. */
export interface MirrorColumn {
  readonly name: string;
  readonly type: "text" | "numeric" | "boolean" | "timestamptz";
  readonly rule: Rule;
}

/** A mirror table; `name` and the columns are the only identifiers that reach SQL. */
export interface MirrorTable {
  readonly name: string;
  /** Second column of the primary key, beside `scope`. */
  readonly id: string;
  readonly columns: readonly MirrorColumn[];
  /** Finality and directness of a row, which are not stored apart: its columns tell. */
  readonly standing: (columns: Readonly<Record<string, Value>>) => readonly [number, number];
  /** Only payment intents can be denied by the provider. */
  readonly missing: boolean;
}

type Shorthand = readonly [name: string, type: MirrorColumn["type"], rule: Rule];

function columns(list: readonly Shorthand[]): MirrorColumn[] {
  return list.map(([name, type, rule]) => ({ name, type, rule }));
}

const MARKS: readonly Shorthand[] = [
  ["intent_mark", "text", "sticky"],
  ["reference", "text", "sticky"],
  ["key_mark", "text", "sticky"],
  ["owned", "text", "sticky"],
];

/** Success beats everything, a cancel beats what is not final. */
const INTENT_FINALITY: Readonly<Record<string, number>> = { succeeded: 2, canceled: 1 };

/** `tallyd.stripe_payment_intent`. */
export const PAYMENT_INTENTS: MirrorTable = {
  name: "stripe_payment_intent",
  id: "id",
  columns: columns([
    ["scope", "text", "key"],
    ["id", "text", "key"],
    ["amount", "numeric", "plain"],
    ["amount_received", "numeric", "plain"],
    ["amount_capturable", "numeric", "plain"],
    ["currency", "text", "plain"],
    ["status", "text", "plain"],
    ["customer", "text", "sticky"],
    ["payee", "text", "sticky"],
    ["purpose", "text", "sticky"],
    ["invoice", "text", "sticky"],
    ["latest_charge", "text", "sticky"],
    ["failure_code", "text", "plain"],
    ["cancellation_reason", "text", "plain"],
    ...MARKS,
    ["asynchronous", "boolean", "plain"],
    ["created_at", "timestamptz", "sticky"],
  ]),
  standing: (row) => [INTENT_FINALITY[String(row["status"])] ?? 0, 1],
  missing: true,
};

/** `tallyd.charge`. */
export const CHARGES: MirrorTable = {
  name: "charge",
  id: "charge_id",
  columns: columns([
    ["scope", "text", "key"],
    ["charge_id", "text", "key"],
    ["rail", "text", "key"],
    ["payment_intent", "text", "sticky"],
    ["amount", "numeric", "plain"],
    ["amount_captured", "numeric", "plain"],
    ["amount_refunded", "numeric", "plain"],
    ["currency", "text", "plain"],
    ["status", "text", "plain"],
    ["captured", "boolean", "plain"],
    ["refunded", "boolean", "plain"],
    ["disputed", "boolean", "plain"],
    ["payer", "text", "sticky"],
    ["payee", "text", "sticky"],
    ["instrument", "text", "sticky"],
    ["purpose", "text", "sticky"],
    ["invoice", "text", "sticky"],
    ["transfer", "text", "sticky"],
    ["source_transfer", "text", "sticky"],
    ["failure_code", "text", "plain"],
    ...MARKS,
    ["derived", "boolean", "plain"],
    // A derived charge only knows about when it was paid; the charge itself knows better.
    ["created_at", "timestamptz", "direct"],
  ]),
  // Success first: a pending charge that its succeeded intent names has been paid.
  standing: (row) => [row["status"] === "succeeded" ? 1 : 0, row["derived"] === true ? 0 : 1],
  missing: false,
};

/** `tallyd.refund`. */
export const REFUNDS: MirrorTable = {
  name: "refund",
  id: "refund_id",
  columns: columns([
    ["scope", "text", "key"],
    ["refund_id", "text", "key"],
    ["charge_id", "text", "sticky"],
    ["payment_intent", "text", "sticky"],
    ["amount", "numeric", "plain"],
    ["currency", "text", "plain"],
    ["status", "text", "plain"],
    ["reason", "text", "sticky"],
    ["failure_reason", "text", "sticky"],
    ["created_at", "timestamptz", "sticky"],
  ]),
  // A refund may fail after it succeeded, never the other way round (case B29).
  standing: (row) => [row["status"] === "failed" || row["status"] === "canceled" ? 1 : 0, 1],
  missing: false,
};

/** `tallyd.dispute`. */
export const DISPUTES: MirrorTable = {
  name: "dispute",
  id: "dispute_id",
  columns: columns([
    ["scope", "text", "key"],
    ["dispute_id", "text", "key"],
    ["charge_id", "text", "sticky"],
    ["payment_intent", "text", "sticky"],
    ["amount", "numeric", "plain"],
    ["currency", "text", "plain"],
    ["status", "text", "plain"],
    ["reason", "text", "sticky"],
    ["refundable", "boolean", "sticky"],
    ["created_at", "timestamptz", "sticky"],
  ]),
  // An appeal may turn a lost dispute around, so no state is final.
  standing: () => [0, 1],
  missing: false,
};

/** The table that a fact belongs to. */
export function tableOf(
  fact: PaymentIntentFact | ChargeFact | RefundFact | DisputeFact,
): MirrorTable {
  return { payment_intent: PAYMENT_INTENTS, charge: CHARGES, refund: REFUNDS, dispute: DISPUTES }[
    fact.kind
  ];
}

/** What a fact says about its row. */
export function statementOf(
  fact: PaymentIntentFact | ChargeFact | RefundFact | DisputeFact,
): Statement {
  const atMs = fact.versionAt.getTime();
  const row = columnsOf(fact);
  const order: Order = [...tableOf(fact).standing(row), atMs, fact.versionRank];
  return { columns: row, order, fieldOrders: {}, newestMs: atMs };
}

function columnsOf(
  fact: PaymentIntentFact | ChargeFact | RefundFact | DisputeFact,
): Record<string, Value> {
  switch (fact.kind) {
    case "payment_intent":
      return {
        scope: fact.scope,
        id: fact.id,
        amount: fact.amount,
        amount_received: fact.amountReceived,
        amount_capturable: fact.amountCapturable,
        currency: fact.currency,
        status: fact.status,
        customer: fact.customer,
        payee: fact.payee,
        purpose: fact.purpose,
        invoice: fact.invoice,
        latest_charge: fact.latestCharge,
        failure_code: fact.failureCode,
        cancellation_reason: fact.cancellationReason,
        ...markColumns(fact),
        asynchronous: fact.asynchronous,
        created_at: fact.createdAt,
      };
    case "charge":
      return chargeColumns(fact);
    case "refund":
      return {
        scope: fact.scope,
        refund_id: fact.refundId,
        charge_id: fact.chargeId,
        payment_intent: fact.paymentIntent,
        amount: fact.amount,
        currency: fact.currency,
        status: fact.status,
        reason: fact.reason,
        failure_reason: fact.failureReason,
        created_at: fact.createdAt,
      };
    case "dispute":
      return {
        scope: fact.scope,
        dispute_id: fact.disputeId,
        charge_id: fact.chargeId,
        payment_intent: fact.paymentIntent,
        amount: fact.amount,
        currency: fact.currency,
        status: fact.status,
        reason: fact.reason,
        refundable: fact.refundable,
        created_at: fact.createdAt,
      };
  }
}

function chargeColumns(fact: ChargeFact): Record<string, Value> {
  return {
    scope: fact.scope,
    charge_id: fact.chargeId,
    rail: fact.rail,
    payment_intent: fact.paymentIntent,
    amount: fact.amount,
    amount_captured: fact.amountCaptured,
    amount_refunded: fact.amountRefunded,
    currency: fact.currency,
    status: fact.status,
    captured: fact.captured,
    refunded: fact.refunded,
    disputed: fact.disputed,
    payer: fact.payer,
    payee: fact.payee,
    instrument: fact.instrument,
    purpose: fact.purpose,
    invoice: fact.invoice,
    transfer: fact.transfer,
    source_transfer: fact.sourceTransfer,
    failure_code: fact.failureCode,
    ...markColumns(fact),
    derived: fact.derived,
    created_at: fact.createdAt,
  };
}

function markColumns(fact: {
  readonly intentMark: string | null;
  readonly reference: string | null;
  readonly keyMark: string | null;
  readonly owned: Ownership;
}): Record<string, Value> {
  return {
    intent_mark: fact.intentMark,
    reference: fact.reference,
    key_mark: fact.keyMark,
    // "Not decidable" says nothing: it must not overwrite what an earlier statement said.
    owned: fact.owned === "unknown" ? null : fact.owned,
  };
}
