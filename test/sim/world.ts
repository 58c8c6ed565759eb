/**
 * A world in plain objects: rows of a team's table and what happened at Stripe. Ages are whole
 * seconds before the world's now, amounts are minor units.
 */
export type RowState =
  "key_minted" | "in_flight" | "recorded" | "failed_retryable" | "failed_terminal" | "reconciling";

export interface SimRow {
  readonly id: string;
  readonly account: string;
  readonly scope: string;
  readonly kind: "charge" | "capture" | "refund";
  readonly amount: number;
  readonly currency: string;
  readonly key: string;
  readonly state: RowState;
  readonly chargeId: string | null;
  readonly reference: string | null;
  readonly paymentId: string | null;
  readonly customer: string | null;
  readonly fingerprint: string | null;
  readonly repeatConfirmed: boolean;
  /** What the row said of the amount when it was recorded, where somebody changed it later. */
  readonly amountAtFirst: number | null;
  readonly createdAge: number;
  readonly updatedAge: number;
}

export interface SimRefund {
  readonly id: string;
  readonly amount: number;
  /** `undone`: it succeeded first and failed later. */
  readonly status: "succeeded" | "pending" | "failed" | "undone";
  readonly age: number;
}

export interface SimDispute {
  readonly id: string;
  readonly amount: number;
  readonly status: "needs_response" | "warning_needs_response" | "lost" | "won";
  readonly reason: string;
  readonly age: number;
}

export interface SimCharge {
  readonly id: string;
  readonly status: "succeeded" | "pending" | "failed";
  readonly captured: number;
  readonly age: number;
  readonly refunds: readonly SimRefund[];
  readonly disputes: readonly SimDispute[];
}

/** A payment intent of Stripe's with its attempts, oldest first. */
export interface SimPayment {
  readonly id: string;
  readonly scope: string;
  readonly amount: number;
  readonly currency: string;
  readonly status:
    | "requires_payment_method"
    | "requires_action"
    | "processing"
    | "requires_capture"
    | "succeeded"
    | "canceled";
  readonly customer: string | null;
  readonly description: string | null;
  readonly invoice: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** Idempotency key of the request that made it. */
  readonly key: string;
  readonly age: number;
  readonly charges: readonly SimCharge[];
  /** Some of its events never arrive; the object lists bring what they said. */
  readonly lossy: boolean;
}

/** One purchase, or one thing that went wrong with it. */
export interface Story {
  readonly name: string;
  readonly rows: readonly SimRow[];
  readonly payments: readonly SimPayment[];
}

export interface World {
  readonly seed: number;
  /** Begins every id of this world. */
  readonly prefix: string;
  readonly stories: readonly Story[];
}

/** What the set-up of all worlds of a batch has in common. */
export interface Setup {
  readonly resolve: "write" | "suggest" | "off";
  /** Is `metadata.app = shop` what makes an object ours? */
  readonly owned: boolean;
}

export const MINUTE = 60;
export const HOUR = 3_600;
export const DAY = 86_400;

export function rowsOf(world: World): SimRow[] {
  return world.stories.flatMap((story) => story.rows);
}

export function paymentsOf(world: World): SimPayment[] {
  return world.stories.flatMap((story) => story.payments);
}
