import { chargeShape, intentShape } from "./render-payment.ts";
import { minor } from "./shape-parts.ts";
import type { Related } from "./shape-parts.ts";
import type {
  BalanceTransactionRecord,
  DisputeRecord,
  ObjectRecord,
  RefundRecord,
  Wire,
} from "./records.ts";
import type { Space } from "./space.ts";

/** The current relations of a space. */
export function relatedIn(space: Space, now: number): Related {
  return {
    charges: (id) => space.charges.records("payment_intent", id).toReversed(),
    refunds: (id) => space.refunds.records("charge", id).toReversed(),
    now,
  };
}

function refundShape(record: RefundRecord): Wire {
  const failed = record.failure_reason !== null;
  return {
    id: record.id,
    object: "refund",
    amount: minor(record.amount),
    balance_transaction: record.balance_transaction,
    charge: record.charge,
    created: record.created,
    currency: record.currency,
    customer: null,
    customer_account: null,
    destination_details: { card: { type: "refund", reference: "pending" }, type: "card" },
    ...(failed
      ? {
          failure_balance_transaction: record.failure_balance_transaction,
          failure_reason: record.failure_reason,
        }
      : {}),
    metadata: record.metadata,
    payment_intent: record.payment_intent,
    payment_method: null,
    reason: record.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: record.status,
    transfer_reversal: null,
  };
}

/** Days to answer a dispute, as card networks usually give. */
const DISPUTE_ANSWER_SECONDS = 9 * 24 * 60 * 60;

function disputeShape(record: DisputeRecord, related: Related): Wire {
  const due = record.created + DISPUTE_ANSWER_SECONDS;
  const inquiry = record.status.startsWith("warning_");
  return {
    id: record.id,
    object: "dispute",
    amount: minor(record.amount),
    balance_transactions: record.balance_transactions,
    charge: record.charge,
    created: record.created,
    currency: record.currency,
    enhanced_eligibility_types: [],
    evidence: { customer_email_address: "jenny.rosen@example.com", ...record.evidence },
    evidence_details: {
      due_by: due,
      has_evidence: Object.keys(record.evidence).length > 0,
      past_due: related.now > due,
      submission_count: record.evidenceSubmitted ? 1 : 0,
      enhanced_eligibility: {},
    },
    intended_submission_method: null,
    is_charge_refundable: record.is_charge_refundable,
    livemode: record.livemode,
    metadata: record.metadata,
    network_reason_code: "10.4",
    payment_intent: record.payment_intent,
    payment_method_details: {
      card: {
        brand: "visa",
        case_type: inquiry ? "inquiry" : "chargeback",
        network: "visa",
        network_reason_code: "10.4",
      },
      type: "card",
    },
    reason: record.reason,
    status: record.status,
  };
}

function ledgerShape(record: BalanceTransactionRecord, related: Related): Wire {
  const fee = minor(record.fee);
  const details = {
    amount: fee,
    application: null,
    currency: record.currency,
    description: "Stripe processing fees",
    type: "stripe_fee",
  };
  return {
    id: record.id,
    object: "balance_transaction",
    amount: minor(record.amount),
    available_on: record.available_on,
    balance_type: "payments",
    created: record.created,
    currency: record.currency,
    description: record.description,
    exchange_rate: null,
    fee,
    fee_details: fee === 0 ? [] : [details],
    net: minor(record.amount - record.fee),
    reporting_category: record.reporting_category,
    source: record.source,
    status: related.now >= record.available_on ? "available" : "pending",
    type: record.type,
  };
}

function shape(record: ObjectRecord, version: string, related: Related): Wire {
  if ("amount_capturable" in record) return intentShape(record, version, related);
  if ("amount_refunded" in record) return chargeShape(record, version, related, refundShape);
  if ("failure_reason" in record) return refundShape(record);
  if ("is_charge_refundable" in record) return disputeShape(record, related);
  if ("reporting_category" in record) return ledgerShape(record, related);
  return {
    id: record.id,
    object: record.object,
    created: record.created,
    livemode: record.livemode,
    metadata: record.metadata,
    ...record.fields,
  };
}

/** An object in the shape of an API version. */
export function render(record: ObjectRecord, version: string, related: Related): Wire {
  const wire = shape(record, version, related);
  return record.extra === undefined ? wire : { ...wire, ...record.extra };
}

/** The fields of `before` that differ from `after`, as `data.previous_attributes` shows them. */
export function changedFields(before: Wire, after: Wire): Wire {
  const changed = Object.entries(before).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(after[name]),
  );
  return Object.fromEntries(changed);
}
