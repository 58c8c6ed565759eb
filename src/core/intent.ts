import type { IntentState } from "./states.ts";

/** What the stored response of an attempt is; see `responseKind`. */
export type ResponseKind = "none" | "object" | "error" | "other";

/**
 * A row of the team's table in tallyd's words. Times are ISO 8601 in UTC with microseconds: a Date
 * would cut them, and compare-and-set needs them whole.
 */
export interface IntentRow {
  readonly intentId: string;
  readonly accountId: string;
  readonly rail: "stripe" | "evm";
  readonly scope: string;
  /** Kind of the call: charge, capture, refund. */
  readonly kind: string;
  /** Minor units. */
  readonly amount: bigint;
  /** Lower case. */
  readonly currency: string;
  readonly idempotencyKey: string | null;
  readonly state: IntentState;
  /** As spelled in the team's table. */
  readonly rawState: string;
  readonly chargeId: string | null;
  readonly responseKind: ResponseKind;
  readonly fingerprint: string | null;
  /** The spelling that reproduces the fingerprint; `null`: none does. */
  readonly fingerprintFit: string | null;
  readonly reference: string | null;
  readonly paymentId: string | null;
  readonly customer: string | null;
  readonly network: string | null;
  readonly asset: string | null;
  readonly payer: string | null;
  readonly payee: string | null;
  readonly nonce: string | null;
  readonly validBefore: string | null;
  /** Marks that a payment of this row carries when its payment identifier is an MPP challenge. */
  readonly challengeNonce: string | null;
  readonly challengeMemo: string | null;
  readonly repeatConfirmed: boolean;
  readonly createdAt: string;
  /** The creation time where the table has no time of change. */
  readonly updatedAt: string;
  /** Hash of all of the above: differs when anything of it differs. */
  readonly rowHash: string;
}

/** One thing that is wrong with a row. */
export interface FieldFault {
  readonly field: string;
  readonly seen: string;
  readonly allowed: string;
}

/** A row that cannot be used as it stands, or only with a remark. */
export interface RowFault {
  /** `null`: the row has no id. */
  readonly intentId: string | null;
  /** True: the row is used all the same (a time ahead of the clock). */
  readonly kept: boolean;
  readonly faults: readonly FieldFault[];
}
