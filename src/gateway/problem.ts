/** The refusals of the gateway, each with the one thing that a caller can do about it. */
export type ProblemCode =
  | "payment_malformed"
  | "payment_id_missing"
  | "payment_id_invalid"
  | "payment_id_conflict"
  | "authorization_reused"
  | "key_missing"
  | "key_invalid"
  | "key_conflict"
  | "in_progress"
  | "outcome_unknown"
  | "response_expired"
  | "response_not_kept"
  | "header_too_large"
  | "body_too_large"
  | "body_unreadable"
  | "store_unavailable";

/** A refusal as it is answered: `application/problem+json` (RFC 9457) with a `code` of its own. */
export interface Problem {
  readonly code: ProblemCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Seconds after which asking again can help; `null`: it cannot. */
  readonly retryAfterS: number | null;
}

interface Wording {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly retryAfterS?: number;
}

const WORDING: Readonly<Record<ProblemCode, Wording>> = {
  payment_malformed: {
    status: 400,
    title: "The payment cannot be read",
    detail: "Send PAYMENT-SIGNATURE as base64 of the JSON of one payment payload.",
  },
  payment_id_missing: {
    status: 400,
    title: "A payment identifier is required",
    detail: "Put it into extensions['payment-identifier'].info.id of the payment payload.",
  },
  payment_id_invalid: {
    status: 400,
    title: "The payment identifier is not valid",
    detail: "It has 16 to 128 characters out of letters, digits, hyphen and underscore.",
  },
  payment_id_conflict: {
    status: 409,
    title: "This payment identifier belongs to another payment or request",
    detail: "Resend the first payment unchanged, or buy anew under a new identifier.",
  },
  authorization_reused: {
    status: 409,
    title: "This signed authorization was presented under another identifier",
    detail: "Resend it under its first identifier; it never pays for a second thing.",
  },
  key_missing: {
    status: 400,
    title: "Idempotency-Key is required",
    detail: 'Send a unique value in quotes for each operation: Idempotency-Key: "…".',
  },
  key_invalid: {
    status: 400,
    title: "Idempotency-Key is not valid",
    detail: "It is one string in quotes of 1 to 255 printable ASCII characters.",
  },
  key_conflict: {
    status: 422,
    title: "Idempotency-Key was used with another request",
    detail: "Send the first request unchanged, or use a new key for a new operation.",
  },
  in_progress: {
    status: 409,
    title: "The first request is still being processed",
    detail: "Send the same request again later; do not sign or key it anew.",
    retryAfterS: 1,
  },
  outcome_unknown: {
    status: 409,
    title: "The end of an earlier attempt is not known",
    detail:
      "It may have paid or acted. Look it up (the nonce on chain, the record) before another.",
  },
  response_expired: {
    status: 409,
    title: "This was answered, and the answer is no longer kept",
    detail: "Nothing was done again. A new purchase needs a new identifier and authorization.",
  },
  response_not_kept: {
    status: 409,
    title: "This was answered, and the answer was too large to be kept",
    detail: "Nothing was done again. A new purchase needs a new identifier and authorization.",
  },
  header_too_large: {
    status: 431,
    title: "The payment or key header is too large",
    detail: "Send a payment payload without what the server does not need.",
  },
  body_too_large: {
    status: 413,
    title: "The body is too large",
    detail: "Send a smaller one.",
  },
  body_unreadable: {
    status: 415,
    title: "A body of this type cannot be bound to the request",
    detail: "Send a type that this server parses, in JSON of moderate depth and exact numbers.",
  },
  store_unavailable: {
    status: 503,
    title: "The record of requests cannot be reached",
    detail: "Nothing was done. Send the same request again later.",
    retryAfterS: 5,
  },
};

/** The refusal of a code. */
export function problemOf(code: ProblemCode): Problem {
  return { retryAfterS: null, ...WORDING[code], code };
}
