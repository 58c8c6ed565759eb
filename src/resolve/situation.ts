/**
 * The situation of one ambiguous intent: everything that its decision may rest on, read at one
 * moment. The decision itself (decide.ts) sees nothing else.
 */
import type { IntentState } from "../core/states.ts";

/** Half-open range of time: `from` is included, `to` is not. */
export interface Range {
  readonly from: Date;
  readonly to: Date;
}

/** The row of the team's table, as it was re-read right before the decision. */
export interface OpenIntent {
  readonly intentId: string;
  readonly accountId: string;
  readonly scope: string;
  readonly operationId: string | null;
  /** Minor units. */
  readonly amount: bigint;
  /** Lower case. */
  readonly currency: string;
  readonly idempotencyKey: string | null;
  readonly state: IntentState;
  /** As the row spells it: pi_, ch_, py_; `null`: none is stored. */
  readonly chargeId: string | null;
  readonly fingerprint: string | null;
  readonly reference: string | null;
  readonly payee: string | null;
  /** The token's address; `null`: the row names none, or it is no payment on chain. */
  readonly asset: string | null;
  /** A person meant this purchase as a second one. */
  readonly repeatConfirmed: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** False: the table has no time of change, so nobody knows when the last attempt was. */
  readonly touchKnown: boolean;
}

/** A Stripe payment intent that a mark ties to the row. */
export interface OwnPayment {
  readonly id: string;
  /** Open enum, as Stripe spells it. */
  readonly status: string;
  readonly amount: bigint;
  readonly currency: string;
  /** Of the last failed attempt; `null`: none failed, as far as is known. */
  readonly failureCode: string | null;
  readonly cancellationReason: string | null;
  /** Which mark ties it to the row: charge_id, key, metadata, reference. */
  readonly basis: string;
  readonly createdAt: Date;
  /** The provider's time of this version. */
  readonly versionAt: Date;
  /** When it was last read or received. */
  readonly seenAt: Date;
  /** Stripe denies the id since then; `null`: it does not. */
  readonly missingSince: Date | null;
}

/** A charge that was matched to the row. */
export interface OwnCharge {
  readonly chargeId: string;
  readonly paymentIntent: string | null;
  readonly status: "pending" | "succeeded" | "failed";
  /** Paid and captured, and not the connected account's copy of a platform charge. */
  readonly succeeded: boolean;
  readonly captured: boolean;
  /** The connected account's copy of a platform charge (case B20). */
  readonly mirrored: boolean;
  readonly amount: bigint;
  readonly amountCaptured: bigint;
  /** Captured, less what went back. */
  readonly net: bigint;
  readonly currency: string;
  readonly payee: string | null;
  /** The token's address; `null`: not on chain. */
  readonly asset: string | null;
  readonly failureCode: string | null;
  readonly basis: string;
  /** Its marks point to different rows (src/README.md, matching). */
  readonly torn: boolean;
  readonly createdAt: Date;
}

/** A successful charge of the same operation that is not the row's own, with something left. */
export interface SiblingCharge {
  readonly chargeId: string;
  /** `null`: no row is its own. */
  readonly intentId: string | null;
  readonly net: bigint;
  readonly currency: string;
  readonly createdAt: Date;
}

/** Another row with the same key or payment id and other material parameters. */
export interface RivalRow {
  readonly intentId: string;
  readonly mark: "key" | "payment_id";
  readonly amount: bigint;
  readonly currency: string;
  readonly payee: string | null;
}

/** A hole in what is proven to be read. */
export interface Gap extends Range {
  readonly source: string;
}

/** A direct look at Stripe, right before an absence verdict. */
export type LastLook =
  | { readonly kind: "id"; readonly id: string; readonly found: boolean; readonly at: Date }
  | { readonly kind: "lists"; readonly range: Range; readonly at: Date };

/** What an absence verdict rests on. */
export interface AbsenceFacts {
  /** Parts of the time of the attempts that are not proven to be read, of both lists. */
  readonly gaps: readonly Gap[];
  /** Objects in the mirror, of any time, that carry a mark of the row. */
  readonly marked: readonly string[];
  /**
   * Owned objects made in the time of the attempts: how many, and how many of them the marks set
   * apart.
   */
  readonly owned: number;
  readonly withMetadata: number;
  readonly withKey: number;
  /** Those whose owner no mark tells; a bounded sample. */
  readonly unmarked: readonly string[];
  readonly unmarkedTotal: number;
  /** `null`: nobody looked yet. */
  readonly look: LastLook | null;
}

/** Everything about one ambiguous intent at one moment. */
export interface Situation {
  readonly intent: OpenIntent;
  readonly payments: readonly OwnPayment[];
  readonly charges: readonly OwnCharge[];
  readonly siblings: readonly SiblingCharge[];
  readonly rivals: readonly RivalRow[];
  /** Idempotency keys that two or more of the operation's successes share. */
  readonly sharedKeys: readonly string[];
  readonly absence: AbsenceFacts;
}
