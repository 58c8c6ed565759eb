import Stripe from "stripe";
import { BugError, UnreadableError } from "../../core/errors.ts";

/**
 * What a failed read means and what helps: `no` retry, `pause` the whole client (429), `serial`
 * (the object is locked: one after the other), or simply `again`.
 */
export interface ReadFault {
  readonly error: UnreadableError;
  readonly retry: "no" | "pause" | "serial" | "again";
}

const MS_PER_SECOND = 1_000;
const MESSAGE_CHARS_MAX = 300;
// Stripe shortens keys in its messages itself; this is the belt to those braces.
const KEY_SHAPE = /\b(?:sk|rk|pk|whsec)_[\w*]+/g;

/** True when Stripe denies an object (404, or 400 where the id came in a parameter). */
export function isMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeError && error.code === "resource_missing";
}

/**
 * Turns whatever the SDK threw into a fault with a code (table 1.4 of Stripe's error classes).
 * `what` names the read, e.g. `charges of platform/test`.
 */
export function translateError(error: unknown, what: string): ReadFault {
  if (error instanceof UnreadableError) return { error, retry: "no" };
  const { StripeError } = Stripe.errors;
  // The SDK wraps whatever its HTTP client throws; a stopped write must not look like a bad line.
  const detail: unknown = error instanceof Error && "detail" in error ? error.detail : null;
  if (detail instanceof BugError) throw detail;
  if (!(error instanceof StripeError)) return fault("shape", what, error, "no");
  // The lock is on one object; the limiters know nothing of it (no reason header, no pause).
  if (error.code === "lock_timeout") return fault("locked", what, error, "serial");
  const status = error.statusCode;
  if (status === 429) return fault("rate_limit", what, error, "pause");
  if (status === 401) return fault("auth", what, error, "no");
  if (status === 403) return fault("permission", what, error, "no");
  if (error instanceof Stripe.errors.StripeConnectionError) {
    return fault("network", what, error, "again");
  }
  // No status: the body was no JSON. A proxy's error page looks so, and goes away like a 502.
  if (status === undefined) return fault("shape", what, error, "again");
  if (status >= 500 || status === 409) return fault("server", what, error, "again");
  return fault("shape", what, error, "no");
}

const ADVICE: Readonly<Record<string, string>> = {
  auth: "Stripe refuses the key: set STRIPE_API_KEY to a valid restricted key with read access",
  permission:
    "the key may not read this: give it Read on PaymentIntents, Charges, Refunds, Disputes and " +
    "Events, and access to the connected account",
  rate_limit: "Stripe limits the reads: lower STRIPE_READS_PER_SECOND if this goes on",
  locked: "the object stayed locked by other requests",
  network: "Stripe could not be reached or the answer broke off",
  server: "Stripe answered with a server error",
  shape: "the answer is not one that Stripe's API gives: check STRIPE_API_BASE and proxies",
};

function fault(
  code: "auth" | "permission" | "rate_limit" | "locked" | "network" | "server" | "shape",
  what: string,
  cause: unknown,
  retry: ReadFault["retry"],
): ReadFault {
  const retryAfterMs = retryAfter(cause);
  return {
    error: new UnreadableError(code, `${what}: ${ADVICE[code] ?? code} (${said(cause)})`, {
      cause,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    }),
    retry,
  };
}

/** What the other side said, short and without keys. */
function said(cause: unknown): string {
  if (!(cause instanceof Error)) return "no error object";
  const status =
    cause instanceof Stripe.errors.StripeError && cause.statusCode !== undefined
      ? `HTTP ${String(cause.statusCode)}: `
      : "";
  const detail = connectionDetail(cause);
  const text = `${status}${cause.message}${detail}`.replace(KEY_SHAPE, "[key]");
  return text.length > MESSAGE_CHARS_MAX ? `${text.slice(0, MESSAGE_CHARS_MAX)}…` : text;
}

function connectionDetail(cause: Error): string {
  if (!("detail" in cause) || !(cause.detail instanceof Error)) return "";
  const { detail } = cause;
  return "code" in detail && typeof detail.code === "string" ? ` ${detail.code}` : "";
}

/** `Retry-After` in seconds; Stripe documents none, a proxy may send one. */
function retryAfter(cause: unknown): number | undefined {
  if (!(cause instanceof Stripe.errors.StripeError)) return undefined;
  const headers: unknown = cause.headers;
  if (headers === null || typeof headers !== "object" || !("retry-after" in headers)) {
    return undefined;
  }
  const seconds = Number(headers["retry-after"]);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * MS_PER_SECOND : undefined;
}
