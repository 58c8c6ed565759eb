import type { Wire } from "./records.ts";

/** How a payment method behaves; the tokens are Stripe's documented test values. */
export interface CardBehaviour {
  readonly kind: "succeeds" | "declines" | "requires_action" | "disputes" | "asynchronous";
  /** Error code and decline code of a decline. */
  readonly code: string;
  readonly declineCode: string;
  /** Reason and first status of the dispute that follows. */
  readonly disputeReason: string;
  readonly disputeStatus: string;
  readonly refundOutcome: "succeeded" | "pending" | "fails_later";
}

const SUCCEEDS: CardBehaviour = {
  kind: "succeeds",
  code: "",
  declineCode: "",
  disputeReason: "",
  disputeStatus: "",
  refundOutcome: "succeeded",
};

function declines(code: string, declineCode: string): CardBehaviour {
  return { ...SUCCEEDS, kind: "declines", code, declineCode };
}

function disputes(disputeReason: string, disputeStatus: string): CardBehaviour {
  return { ...SUCCEEDS, kind: "disputes", disputeReason, disputeStatus };
}

/** By the part of the test token after its brand, in lower case. */
const BY_SUFFIX: Readonly<Record<string, CardBehaviour>> = {
  chargedeclined: declines("card_declined", "generic_decline"),
  chargecustomerfail: declines("card_declined", "generic_decline"),
  chargedeclinedinsufficientfunds: declines("card_declined", "insufficient_funds"),
  chargedeclinedlostcard: declines("card_declined", "lost_card"),
  chargedeclinedstolencard: declines("card_declined", "stolen_card"),
  chargedeclinedvelocitylimitexceeded: declines("card_declined", "card_velocity_exceeded"),
  chargedeclinedfraudulent: declines("card_declined", "fraudulent"),
  chargedeclinedexpiredcard: declines("expired_card", "expired_card"),
  chargedeclinedincorrectcvc: declines("incorrect_cvc", "incorrect_cvc"),
  chargedeclinedprocessingerror: declines("processing_error", "processing_error"),
  createdispute: disputes("fraudulent", "needs_response"),
  createdisputeproductnotreceived: disputes("product_not_received", "needs_response"),
  createdisputeinquiry: disputes("general", "warning_needs_response"),
  authenticationrequired: { ...SUCCEEDS, kind: "requires_action" },
  threedsecure2required: { ...SUCCEEDS, kind: "requires_action" },
  threedsecurerequired: { ...SUCCEEDS, kind: "requires_action" },
  pendingrefund: { ...SUCCEEDS, refundOutcome: "pending" },
  refundfail: { ...SUCCEEDS, refundOutcome: "fails_later" },
};

/** Test card numbers, where a caller sends a number instead of a token. */
const BY_NUMBER: Readonly<Record<string, string>> = {
  "4242424242424242": "visa",
  "4000000000000002": "chargeDeclined",
  "4000000000009995": "chargeDeclinedInsufficientFunds",
  "4000000000009987": "chargeDeclinedLostCard",
  "4000000000000069": "chargeDeclinedExpiredCard",
  "4000000000000127": "chargeDeclinedIncorrectCvc",
  "4000000000000119": "chargeDeclinedProcessingError",
  "4000000000000259": "createDispute",
  "4000000000001976": "createDisputeInquiry",
  "4000002760003184": "authenticationRequired",
  "4000000000003220": "threeDSecure2Required",
  "4000000000007726": "pendingRefund",
  "4000000000005126": "refundFail",
};

/** The token of a test card number; unknown numbers are plain Visa cards. */
export function tokenOfNumber(number: string): string {
  return `pm_card_${BY_NUMBER[number.replaceAll(" ", "")] ?? "visa"}`;
}

/** Whether an id is one of the shared test tokens (`pm_card_…`, `tok_…`). */
export function isTestToken(id: string): boolean {
  return id.startsWith("pm_card_") || id.startsWith("tok_") || id === "pm_usBankAccount_success";
}

/** How a payment of this type with this token goes. */
export function behaviourOf(type: string, token: string | null): CardBehaviour {
  // Bank debits, transfers and the like end days later, and not by the token.
  if (type !== "card") return { ...SUCCEEDS, kind: "asynchronous" };
  const suffix = (token ?? "").replace(/^(pm_card|tok)_/, "").toLowerCase();
  const withoutBrand = suffix.replace(/^(visa|mastercard|amex)_/, "");
  return BY_SUFFIX[withoutBrand] ?? SUCCEEDS;
}

/** The text that goes with a decline. */
export function declineMessage(behaviour: CardBehaviour): string {
  if (behaviour.code === "card_declined") return "Your card was declined.";
  return `The payment failed: ${behaviour.code.replaceAll("_", " ")}.`;
}

/** Personal data such as real charges carry; consumers must not store it. */
export const BILLING_DETAILS: Wire = {
  address: {
    city: "San Francisco",
    country: "US",
    line1: "510 Townsend St",
    line2: null,
    postal_code: "94103",
    state: "CA",
  },
  email: "jenny.rosen@example.com",
  name: "Jenny Rosen",
  phone: "+15555550123",
  tax_id: null,
};
