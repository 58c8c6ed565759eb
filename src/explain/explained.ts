/**
 * What `explain --json` prints (README.md, outside contract): amounts as strings, times in ISO
 * 8601.
 */
import type { Contract } from "../core/contract.ts";

/** A row of the team's table. */
export interface ExplainedIntent {
  readonly id: string;
  readonly account: string;
  readonly scope: string;
  readonly rail: string;
  readonly kind: string;
  readonly operation: string;
  readonly amount: string;
  readonly currency: string;
  readonly idempotencyKey: string | null;
  readonly state: string;
  readonly rawState: string;
  readonly chargeId: string | null;
  readonly responseKind: string;
  readonly fingerprint: string | null;
  readonly reference: string | null;
  readonly paymentId: string | null;
  readonly customer: string | null;
  readonly payer: string | null;
  readonly payee: string | null;
  /** On chain: the token's address, the nonce of the authorization and its end. */
  readonly asset: string | null;
  readonly nonce: string | null;
  readonly validBefore: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** `null`: the row exists. */
  readonly vanishedAt: string | null;
  /** Its look-ups; `null`: it is not ambiguous. */
  readonly ladder: {
    readonly looks: number;
    readonly nextAt: string | null;
    readonly endedAt: string | null;
    readonly missing: unknown;
  } | null;
}

/** A charge and what is left of it. */
export interface ExplainedCharge {
  readonly id: string;
  readonly scope: string;
  readonly rail: string;
  readonly paymentIntent: string | null;
  /** On chain: hash of the transaction, which several charges may share. */
  readonly transaction: string | null;
  readonly status: string;
  readonly succeeded: boolean;
  readonly amount: string;
  readonly amountCaptured: string;
  readonly amountReturned: string;
  readonly net: string;
  readonly currency: string;
  readonly captured: boolean;
  readonly disputed: boolean;
  readonly mirrored: boolean;
  readonly payer: string | null;
  readonly payee: string | null;
  readonly asset: string | null;
  readonly nonce: string | null;
  readonly reference: string | null;
  readonly owned: string;
  readonly operation: string;
  /** `null`: no row is its own. */
  readonly intent: string | null;
  readonly basis: string | null;
  readonly conflict: unknown;
  readonly createdAt: string;
}

/** A Stripe payment intent, with or without a charge. */
export interface ExplainedPayment {
  readonly id: string;
  readonly scope: string;
  readonly status: string;
  readonly amount: string;
  readonly currency: string;
  readonly latestCharge: string | null;
  readonly failureCode: string | null;
  readonly cancellationReason: string | null;
  readonly createdAt: string;
  readonly missingSince: string | null;
}

/** A refund or a dispute. */
export interface ExplainedReturn {
  readonly id: string;
  readonly scope: string;
  readonly charge: string | null;
  readonly paymentIntent: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
  readonly reason: string | null;
  readonly createdAt: string;
}

/** An event, as it came. */
export interface ExplainedEvent {
  readonly id: string;
  readonly type: string;
  readonly scope: string;
  readonly object: string | null;
  readonly idempotencyKey: string | null;
  readonly via: string;
  readonly status: string;
  readonly deliveries: number;
  readonly createdAt: string;
  readonly receivedAt: string;
}

/** A decision of the resolver. */
export interface ExplainedResolution {
  readonly id: string;
  readonly intent: string;
  readonly decision: string;
  readonly reason: string;
  readonly fromState: string;
  readonly toState: string | null;
  readonly charge: string | null;
  readonly outcome: string;
  readonly proof: Readonly<Record<string, unknown>>;
  readonly contract: Readonly<Record<string, unknown>>;
  readonly decidedAt: string;
}

/** What of a source is proven to be read. */
export interface ExplainedCoverage {
  readonly source: string;
  readonly scope: string;
  /** The newest ranges, oldest of them first. */
  readonly ranges: readonly { readonly from: string; readonly to: string }[];
  /** Does it cover the time from the row's creation to its last change? `null`: there is no row. */
  readonly coversIntent: boolean | null;
  readonly lastOkAt: string | null;
  readonly failingSince: string | null;
  readonly lastError: string | null;
}

/** Everything known about one purchase. `Shown` is the outside shape of an incident. */
export interface Explained<Shown = unknown> {
  /** The id that was asked about. */
  readonly query: string;
  /** Usually one; an id that stands in several purchases names them all. */
  readonly operations: readonly string[];
  /** The row that the id names or belongs to; `null`: no row is known. */
  readonly intent: ExplainedIntent | null;
  readonly intents: readonly ExplainedIntent[];
  readonly charges: readonly ExplainedCharge[];
  readonly paymentIntents: readonly ExplainedPayment[];
  readonly refunds: readonly ExplainedReturn[];
  readonly disputes: readonly ExplainedReturn[];
  readonly events: readonly ExplainedEvent[];
  readonly resolutions: readonly ExplainedResolution[];
  readonly incidents: readonly Shown[];
  readonly coverage: readonly ExplainedCoverage[];
  /** The six answers about `intent`; `null`: no row is known. */
  readonly contract: Contract | null;
}
