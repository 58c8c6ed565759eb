/** A JSON value as it goes over the wire; `undefined` members are left out. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** A JSON object of the wire. */
export interface Wire {
  readonly [name: string]: Json | undefined;
}

/** Stripe metadata: text to text. */
export type Metadata = Readonly<Record<string, string>>;

/**
 * What every stored object has. Records are never changed in place: a change puts a new record in
 * the store, so an event can keep the record it was made from. `created` is in Unix seconds.
 * `extra` overrides any rendered field, for shapes that the state machine never makes.
 */
export interface RecordBase {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly livemode: boolean;
  readonly metadata: Metadata;
  readonly extra?: Wire;
}

/** A payment intent; amounts in minor units. */
export interface PaymentIntentRecord extends RecordBase {
  readonly object: "payment_intent";
  readonly amount: bigint;
  readonly amount_capturable: bigint;
  readonly amount_received: bigint;
  readonly application_fee_amount: bigint | null;
  readonly canceled_at: number | null;
  readonly cancellation_reason: string | null;
  readonly capture_method: string;
  readonly confirmation_method: string;
  readonly currency: string;
  readonly customer: string | null;
  readonly description: string | null;
  readonly invoice: string | null;
  readonly last_payment_error: Wire | null;
  readonly latest_charge: string | null;
  readonly next_action: Wire | null;
  readonly payment_method: string | null;
  readonly payment_method_types: readonly string[];
  readonly receipt_email: string | null;
  readonly shipping: Wire | null;
  readonly status: string;
  readonly transfer_data: Wire | null;
}

/** A charge: one attempt to move money; amounts in minor units. */
export interface ChargeRecord extends RecordBase {
  readonly object: "charge";
  readonly amount: bigint;
  readonly amount_captured: bigint;
  readonly amount_refunded: bigint;
  readonly balance_transaction: string | null;
  readonly billing_details: Wire;
  readonly captured: boolean;
  readonly currency: string;
  readonly customer: string | null;
  readonly description: string | null;
  readonly disputed: boolean;
  readonly dispute: string | null;
  readonly failure_code: string | null;
  readonly failure_message: string | null;
  readonly invoice: string | null;
  readonly outcome: Wire | null;
  readonly paid: boolean;
  readonly payment_intent: string | null;
  readonly payment_method: string | null;
  readonly payment_method_type: string;
  readonly receipt_email: string | null;
  readonly refunded: boolean;
  readonly shipping: Wire | null;
  readonly source_transfer: string | null;
  readonly status: string;
  readonly transfer: string | null;
  readonly transfer_data: Wire | null;
  /** How refunds of this charge end; from the test card, not rendered. */
  readonly refundOutcome: "succeeded" | "pending" | "fails_later";
}

/** A refund of a charge; amount in minor units. */
export interface RefundRecord extends RecordBase {
  readonly object: "refund";
  readonly amount: bigint;
  readonly balance_transaction: string | null;
  readonly charge: string;
  readonly currency: string;
  readonly failure_balance_transaction: string | null;
  readonly failure_reason: string | null;
  readonly payment_intent: string | null;
  readonly reason: string | null;
  readonly status: string;
}

/** A dispute or inquiry about a charge; amount in minor units. */
export interface DisputeRecord extends RecordBase {
  readonly object: "dispute";
  readonly amount: bigint;
  readonly balance_transactions: readonly string[];
  readonly charge: string;
  readonly currency: string;
  readonly evidence: Wire;
  readonly evidenceSubmitted: boolean;
  readonly is_charge_refundable: boolean;
  readonly payment_intent: string | null;
  readonly reason: string;
  readonly status: string;
}

/** A ledger entry; amount, fee and net in minor units of the settlement currency. */
export interface BalanceTransactionRecord extends RecordBase {
  readonly object: "balance_transaction";
  readonly amount: bigint;
  readonly available_on: number;
  readonly currency: string;
  readonly description: string | null;
  readonly fee: bigint;
  readonly reporting_category: string;
  readonly source: string | null;
  readonly payout: string | null;
  readonly type: string;
}

/** An object without a life of its own here: customers, payment methods, products, prices. */
export interface PlainRecord extends RecordBase {
  readonly fields: Wire;
  /** The test token that decides how a payment method behaves, not rendered. */
  readonly testToken: string | null;
}

/** Whatever can be looked up by its id. */
export type ObjectRecord =
  | PaymentIntentRecord
  | ChargeRecord
  | RefundRecord
  | DisputeRecord
  | BalanceTransactionRecord
  | PlainRecord;

/** What an event shows: a record with what older shapes embed, or raw JSON that a test gave. */
export type Snapshot =
  | {
      readonly kind: "record";
      readonly record: ObjectRecord;
      readonly before: ObjectRecord | null;
      readonly charges: readonly ChargeRecord[];
      readonly refunds: readonly RefundRecord[];
    }
  | { readonly kind: "wire"; readonly wire: Wire };

/** Which request caused an event; both null for what Stripe does by itself. */
export interface Cause {
  readonly requestId: string | null;
  readonly idempotencyKey: string | null;
}

/** A stored event. `pending` names the endpoints that have not acknowledged it yet. */
export interface EventRecord extends RecordBase {
  readonly object: "event";
  readonly type: string;
  readonly api_version: string | null;
  readonly account: string | null;
  readonly snapshot: Snapshot;
  readonly cause: Cause;
  pending: readonly string[];
}
