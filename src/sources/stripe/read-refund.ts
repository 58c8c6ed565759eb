import type { RefundFact } from "../../core/facts.ts";
import { unreadable, unreadableShape, versionOf } from "./part.ts";
import type { Part, ReadContext } from "./part.ts";
import { refundSchema } from "./wire.ts";

// A refund goes forward only: it may succeed first and fail days later (case B29).
const RANKS: Readonly<Record<string, number>> = {
  pending: 1,
  requires_action: 1,
  succeeded: 2,
  failed: 3,
  canceled: 3,
};

/** Reads a `refund` object. An unknown status is kept; it counts as nothing (open enum). */
export function readRefund(object: unknown, context: ReadContext): Part {
  const parsed = refundSchema.safeParse(object);
  if (!parsed.success) return unreadableShape(object, parsed.error);
  const refund = parsed.data;
  const status = refund.status ?? "unknown";
  if (context.eventType === "refund.failed" && status !== "failed" && status !== "canceled") {
    // Case B29 d: type and object disagree, so neither is believed.
    return unreadable(refund.id, `refund.failed carries a refund of status ${status}`);
  }
  const fact: RefundFact = {
    kind: "refund",
    scope: context.scope,
    refundId: refund.id,
    chargeId: refund.charge,
    paymentIntent: refund.payment_intent,
    amount: refund.amount,
    currency: refund.currency,
    status,
    reason: refund.reason,
    failureReason: refund.failure_reason,
    createdAt: refund.created,
    ...versionOf(context, RANKS[status] ?? 0),
  };
  return { facts: [fact], refetch: [], unreadable: null };
}
