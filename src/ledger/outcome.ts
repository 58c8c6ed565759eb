/**
 * What one call of the SDK says about the money. An error describes the SDK's last attempt only, so
 * "nothing ran" is believed only of a call with exactly one attempt (Stripe, "Low-level errors").
 */
import type { JsonObject } from "./errors.ts";
import { field, idField, textField } from "./stripe-client.ts";
import type { StripeObject } from "./stripe-client.ts";

/** How a call ended. */
export type Outcome =
  | { readonly kind: "answered"; readonly object: StripeObject }
  /** Ran and was refused for good: a decline, or parameters that Stripe does not take. */
  | { readonly kind: "refused"; readonly response: JsonObject; readonly reason: string }
  /** Provably nothing ran; the same key may be used again. */
  | {
      readonly kind: "not_run";
      readonly reason: string;
      readonly retryAfterMs: number | null;
      readonly cause: unknown;
    }
  /** Anything else. `refusal` is what the running endpoint said, where it said something. */
  | {
      readonly kind: "unknown";
      readonly reason: string;
      readonly refusal: JsonObject | null;
      readonly cause: unknown;
    };

// Never connected, so nothing was sent.
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

// From the running endpoint: an earlier request may have done what this one was to do.
const ABOUT_THE_STATE = /unexpected_state|already_(?:refunded|captured)|canceled/;
// Another request with the key is running: what it does is not there yet.
const KEY_IN_USE = "idempotency_key_in_use";

// The card networks' texts are short; anything longer is a page of a proxy.
const MESSAGE_MAX = 300;
const MS_PER_SECOND = 1_000;

/**
 * What the SDK gave back. It takes any JSON without a member `error` for an answer, whatever the
 * status: the page of a proxy in front says nothing about what ran behind it.
 */
export function outcomeOfAnswer(object: unknown): Outcome {
  const id = textField(object, "id");
  if (id !== null && textField(object, "object") !== null) {
    return { kind: "answered", object: object as StripeObject };
  }
  const status = field(field(object, "lastResponse"), "statusCode");
  const shown = typeof status === "number" ? ` ${status}` : "";
  const reason = `the answer${shown} is no object of Stripe's, but JSON of somebody in between`;
  return { kind: "unknown", reason, refusal: null, cause: object };
}

/** Classes what the SDK threw after so many attempts. */
export function outcomeOf(error: unknown, attempts: number): Outcome {
  const type = textField(error, "type") ?? "";
  const reason = reasonOf(error, type);
  const unknown = (refusal: JsonObject | null = null): Outcome => ({
    kind: "unknown",
    reason,
    refusal,
    cause: error,
  });
  const once = attempts === 1;
  const notRun = (certain: boolean): Outcome =>
    certain ? { kind: "not_run", reason, retryAfterMs: waitOf(error), cause: error } : unknown();
  switch (type) {
    case "StripeCardError":
      // The key keeps its one result, so a decline is the answer whatever attempt brought it.
      return { kind: "refused", response: failureOf(error), reason };
    case "StripeInvalidRequestError":
      if (textField(error, "code") === KEY_IN_USE) return unknown();
      if (isAboutTheState(error)) return unknown(once ? failureOf(error) : null);
      return once ? { kind: "refused", response: failureOf(error), reason } : unknown();
    case "StripeAuthenticationError":
    case "StripePermissionError":
    case "StripeRateLimitError":
      return notRun(once);
    case "StripeConnectionError":
      return notRun(once && NOT_CONNECTED.has(textField(field(error, "detail"), "code") ?? ""));
    case "":
      // Thrown by the SDK before it sent anything, such as a parameter that it cannot encode.
      return notRun(attempts === 0);
    default:
      return unknown();
  }
}

function isAboutTheState(error: unknown): boolean {
  if (ABOUT_THE_STATE.test(textField(error, "code") ?? "")) return true;
  const status = textField(field(error, "payment_intent"), "status");
  return status !== null && !["requires_payment_method", "canceled"].includes(status);
}

function reasonOf(error: unknown, type: string): string {
  const message = error instanceof Error ? error.message : String(error);
  const status = field(error, "statusCode");
  const shown = typeof status === "number" ? ` ${status}` : "";
  return `${type === "" ? "error" : type}${shown}: ${message}`.slice(0, MESSAGE_MAX);
}

function waitOf(error: unknown): number | null {
  const seconds = Number(textField(field(error, "headers"), "retry-after"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * MS_PER_SECOND : null;
}

/** What is kept of a failure: Stripe's words for it and the ids, nothing about the payer. */
function failureOf(error: unknown): JsonObject {
  const kept: Record<string, string> = {
    type: textField(error, "rawType") ?? "invalid_request_error",
  };
  for (const name of ["code", "decline_code", "param", "message"]) {
    const value = textField(error, name);
    if (value !== null) kept[name] = value.slice(0, MESSAGE_MAX);
  }
  for (const name of ["payment_intent", "charge"]) {
    const id = idField(error, name);
    if (id !== null) kept[name] = id;
  }
  return { error: kept };
}
