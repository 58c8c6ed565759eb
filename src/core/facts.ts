/**
 * Facts: what a source said about one object, in one shape whatever the API version or the way it
 * arrived. Sources make them, the mirror merges them. All amounts are minor units; all strings that
 * could carry personal data are left out or hashed before a fact is made.
 */
export type ChargeStatus = "pending" | "succeeded" | "failed";
export type Ownership = "yes" | "no" | "unknown";

/** When the provider said it, and the life-cycle rank that orders facts of one second. */
export interface Version {
  readonly versionAt: Date;
  readonly versionRank: number;
}

interface Marks {
  readonly intentMark: string | null;
  readonly reference: string | null;
  readonly keyMark: string | null;
  readonly owned: Ownership;
}

export interface PaymentIntentFact extends Version, Marks {
  readonly kind: "payment_intent";
  readonly scope: string;
  readonly id: string;
  readonly amount: bigint;
  readonly amountReceived: bigint;
  readonly amountCapturable: bigint;
  readonly currency: string;
  /** Open enum: unknown values are kept as they are. */
  readonly status: string;
  readonly customer: string | null;
  readonly payee: string | null;
  readonly purpose: string | null;
  readonly invoice: string | null;
  readonly latestCharge: string | null;
  readonly failureCode: string | null;
  readonly cancellationReason: string | null;
  readonly asynchronous: boolean;
  readonly createdAt: Date;
}

export interface ChargeFact extends Version, Marks {
  readonly kind: "charge";
  readonly rail: "stripe" | "evm";
  readonly scope: string;
  readonly chargeId: string;
  readonly paymentIntent: string | null;
  readonly amount: bigint;
  readonly amountCaptured: bigint;
  readonly amountRefunded: bigint;
  readonly currency: string;
  readonly status: ChargeStatus;
  readonly captured: boolean;
  readonly refunded: boolean;
  readonly disputed: boolean;
  readonly payer: string | null;
  readonly payee: string | null;
  readonly instrument: string | null;
  readonly purpose: string | null;
  readonly invoice: string | null;
  readonly transfer: string | null;
  readonly sourceTransfer: string | null;
  readonly failureCode: string | null;
  /** Known only through its payment intent (`latest_charge` of a succeeded one). */
  readonly derived: boolean;
  readonly createdAt: Date;
}

export interface RefundFact extends Version {
  readonly kind: "refund";
  readonly scope: string;
  readonly refundId: string;
  readonly chargeId: string | null;
  readonly paymentIntent: string | null;
  readonly amount: bigint;
  readonly currency: string;
  readonly status: string;
  readonly reason: string | null;
  readonly failureReason: string | null;
  readonly createdAt: Date;
}

export interface DisputeFact extends Version {
  readonly kind: "dispute";
  readonly scope: string;
  readonly disputeId: string;
  readonly chargeId: string | null;
  readonly paymentIntent: string | null;
  readonly amount: bigint;
  readonly currency: string;
  readonly status: string;
  readonly reason: string | null;
  readonly refundable: boolean | null;
  readonly createdAt: Date;
}

/** An idempotency key that the provider reported for a request about an object. */
export interface KeyFact {
  readonly kind: "key";
  readonly scope: string;
  readonly objectId: string;
  readonly idempotencyKey: string;
  readonly eventId: string;
  readonly at: Date;
}

/** The provider denies an id although it is older than the grace period. */
export interface MissingFact {
  readonly kind: "missing";
  readonly scope: string;
  readonly id: string;
  readonly at: Date;
}

export type Fact =
  PaymentIntentFact | ChargeFact | RefundFact | DisputeFact | KeyFact | MissingFact;

/**
 * What a reader made of one provider object: facts, and ids that must be fetched to be believed.
 */
export interface Reading {
  readonly facts: readonly Fact[];
  readonly refetch: readonly { readonly id: string; readonly reason: string }[];
}
