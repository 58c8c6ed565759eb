import type { DisputeFact } from "../../core/facts.ts";
import { unreadableShape, versionOf } from "./part.ts";
import type { Part, ReadContext } from "./part.ts";
import { disputeSchema } from "./wire.ts";

// Inquiry, dispute, its end, and the appeal that only a lost one can have (23.1.0's types).
const RANKS: Readonly<Record<string, number>> = {
  warning_needs_response: 1,
  warning_under_review: 1,
  warning_closed: 1,
  needs_response: 2,
  under_review: 2,
  won: 3,
  lost: 3,
  prevented: 3,
  appeal_needs_response: 4,
  appeal_under_review: 4,
};

/** Reads a `dispute` object, inquiries (`warning_*`) included: case B30. */
export function readDispute(object: unknown, context: ReadContext): Part {
  const parsed = disputeSchema.safeParse(object);
  if (!parsed.success) return unreadableShape(object, parsed.error);
  const dispute = parsed.data;
  const fact: DisputeFact = {
    kind: "dispute",
    scope: context.scope,
    disputeId: dispute.id,
    chargeId: dispute.charge,
    paymentIntent: dispute.payment_intent,
    amount: dispute.amount,
    currency: dispute.currency,
    status: dispute.status,
    reason: dispute.reason,
    refundable: dispute.is_charge_refundable ?? null,
    createdAt: dispute.created,
    ...versionOf(context, RANKS[dispute.status] ?? 0),
  };
  return { facts: [fact], refetch: [], unreadable: null };
}
