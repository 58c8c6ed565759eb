/** What becomes of one sending, on whatever way out, and what errors of the network say of it. */

/** What became of one sending. */
export type SendOutcome =
  | { readonly kind: "sent" }
  | { readonly kind: "rate_limited"; readonly retryAfterMs: number }
  /** The hook is gone: waiting does not help, a person has to give a new one. */
  | { readonly kind: "dead"; readonly reason: string }
  /** The message is at fault, not the hook. */
  | { readonly kind: "refused"; readonly reason: string }
  /** It certainly did not arrive. */
  | { readonly kind: "unreachable"; readonly reason: string }
  /** It may have arrived: the answer was a server error, or none came. */
  | { readonly kind: "uncertain"; readonly reason: string };

// A delay always comes with 429 from those who follow the rules; a proxy in between may not.
const RETRY_AFTER_DEFAULT_MS = 30_000;
// An hour of silence is the most that is believed; then it is asked again.
const RETRY_AFTER_MAX_MS = 3_600_000;

/** The wait that a `Retry-After` header asks for, in milliseconds; bounded. */
export function waitOf(retryAfter: string | null): number {
  if (retryAfter === null || !/^\d{1,9}$/.test(retryAfter)) return RETRY_AFTER_DEFAULT_MS;
  return Math.min(Number(retryAfter) * 1_000, RETRY_AFTER_MAX_MS);
}

// Codes of Node and undici that come before a byte of the request was written.
const BEFORE_SENDING: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "ERR_INVALID_URL",
]);

/** What an error of `fetch` means for the message. Reasons never hold an address. */
export function networkOutcome(error: Error): SendOutcome {
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
  if (cause.message.includes("redirect")) {
    return { kind: "dead", reason: "the hook answers with a redirect" };
  }
  // fetch refuses some ports by itself, without a code.
  return BEFORE_SENDING.has(code) || cause.message === "bad port"
    ? { kind: "unreachable", reason: code }
    : { kind: "uncertain", reason: code };
}
