import { listObject, minor } from "./shape-parts.ts";
import type { Related } from "./shape-parts.ts";
import type { ChargeRecord, PaymentIntentRecord, RefundRecord, Wire } from "./records.ts";
import {
  atLeast,
  METHOD_TYPES_READ_ONLY,
  WITHOUT_EMBEDDED_LISTS,
  WITHOUT_INVOICE,
} from "./versions.ts";

const UNMANAGED: Wire = { enabled: false };
const METHOD_OPTIONS: Wire = { card: { request_three_d_secure: "automatic" } };
const NO_TIP: Wire = { tip: {} };

/**
 * A payment intent in the shape of a version. Members that the version lacks are undefined, which
 * JSON leaves out: one object layout for all keeps rendering of whole pages fast.
 */
export function intentShape(record: PaymentIntentRecord, version: string, related: Related): Wire {
  const modern = atLeast(version, WITHOUT_EMBEDDED_LISTS);
  const endive = atLeast(version, METHOD_TYPES_READ_ONLY);
  const fee = record.application_fee_amount;
  return {
    id: record.id,
    object: "payment_intent",
    application: null,
    automatic_payment_methods: null,
    excluded_payment_method_types: null,
    on_behalf_of: null,
    payment_method_configuration_details: null,
    payment_method_options: METHOD_OPTIONS,
    processing: null,
    review: null,
    setup_future_usage: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    transfer_group: null,
    allowed_payment_method_types: endive ? record.payment_method_types : undefined,
    customer_account: endive ? null : undefined,
    managed_payments: endive ? UNMANAGED : undefined,
    payment_record: endive ? null : undefined,
    amount: minor(record.amount),
    amount_capturable: minor(record.amount_capturable),
    amount_details: NO_TIP,
    amount_received: minor(record.amount_received),
    application_fee_amount: fee === null ? null : minor(fee),
    canceled_at: record.canceled_at,
    cancellation_reason: record.cancellation_reason,
    capture_method: record.capture_method,
    charges: modern ? undefined : embeddedCharges(record.id, version, related),
    client_secret: `${record.id}_secret_${record.id.slice(-10)}`,
    confirmation_method: record.confirmation_method,
    created: record.created,
    currency: record.currency,
    customer: record.customer,
    description: record.description,
    invoice: atLeast(version, WITHOUT_INVOICE) ? undefined : record.invoice,
    last_payment_error: record.last_payment_error,
    latest_charge: modern ? record.latest_charge : undefined,
    livemode: record.livemode,
    metadata: record.metadata,
    next_action: record.next_action,
    payment_method: record.payment_method,
    payment_method_types: record.payment_method_types,
    receipt_email: record.receipt_email,
    shipping: record.shipping,
    status: record.status,
    transfer_data: record.transfer_data ?? undefined,
  };
}

function embeddedCharges(intentId: string, version: string, related: Related): Wire {
  const data = related
    .charges(intentId)
    .map((charge) => chargeShape(charge, version, related, undefined));
  const list = listObject(data, false, `/v1/charges?payment_intent=${intentId}`);
  return { ...list, total_count: data.length };
}

const CARD_DETAILS: Wire = {
  brand: "visa",
  checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: "pass" },
  country: "US",
  exp_month: 8,
  exp_year: 2031,
  fingerprint: "Vb7dQ2mXr0TzYk4N",
  funding: "credit",
  installments: null,
  last4: "4242",
  mandate: null,
  network: "visa",
  three_d_secure: null,
  wallet: null,
};

const CARD_METHOD: Wire = { card: CARD_DETAILS, type: "card" };

function methodDetails(type: string): Wire {
  if (type === "card") return CARD_METHOD;
  return { [type]: { bank_code: "37040044", country: "DE", last4: "3000" }, type };
}

/**
 * A charge in the shape of a version. `refundShape` renders the refunds that old versions embed;
 * without it (inside an embedded list) only the list's frame is shown when there are none.
 */
export function chargeShape(
  record: ChargeRecord,
  version: string,
  related: Related,
  refundShape: ((refund: RefundRecord) => Wire) | undefined,
): Wire {
  const modern = atLeast(version, WITHOUT_EMBEDDED_LISTS);
  return {
    id: record.id,
    object: "charge",
    application: null,
    application_fee: null,
    application_fee_amount: null,
    calculated_statement_descriptor: "EXAMPLE SHOP",
    failure_balance_transaction: null,
    fraud_details: {},
    on_behalf_of: null,
    receipt_number: null,
    review: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    transfer_group: null,
    amount: minor(record.amount),
    amount_captured: minor(record.amount_captured),
    amount_refunded: minor(record.amount_refunded),
    balance_transaction: record.balance_transaction,
    billing_details: record.billing_details,
    captured: record.captured,
    created: record.created,
    currency: record.currency,
    customer: record.customer,
    description: record.description,
    dispute: modern ? undefined : record.dispute,
    destination: modern ? undefined : null,
    order: modern ? undefined : null,
    disputed: record.disputed,
    failure_code: record.failure_code,
    failure_message: record.failure_message,
    invoice: atLeast(version, WITHOUT_INVOICE) ? undefined : record.invoice,
    livemode: record.livemode,
    metadata: record.metadata,
    outcome: record.outcome,
    paid: record.paid,
    payment_intent: record.payment_intent,
    payment_method: record.payment_method,
    payment_method_details: methodDetails(record.payment_method_type),
    receipt_email: record.receipt_email,
    receipt_url: `https://pay.stripe.com/receipts/payment/${record.id}`,
    refunded: record.refunded,
    refunds: modern ? undefined : embeddedRefunds(record.id, related, refundShape),
    shipping: record.shipping,
    source_transfer: record.source_transfer,
    status: record.status,
    transfer: record.transfer ?? undefined,
    transfer_data: record.transfer_data,
  };
}

function embeddedRefunds(
  chargeId: string,
  related: Related,
  refundShape: ((refund: RefundRecord) => Wire) | undefined,
): Wire {
  const refunds = refundShape === undefined ? [] : related.refunds(chargeId).map(refundShape);
  const list = listObject(refunds, false, `/v1/charges/${chargeId}/refunds`);
  return { ...list, total_count: refunds.length };
}
