/** What an object of Stripe's means for the intent that it belongs to. */
import type { JsonObject } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { field, idField, textField } from "./stripe-client.ts";
import type { StripeObject } from "./stripe-client.ts";

/** The meaning of one object. */
export type Verdict =
  | { readonly kind: "done"; readonly object: StripeObject }
  /** The provider has it and is not done with it. */
  | { readonly kind: "open"; readonly object: StripeObject; readonly status: string }
  /** It can never succeed any more. */
  | { readonly kind: "dead"; readonly object: StripeObject; readonly status: string }
  /** It moved money, and not what the row says. */
  | { readonly kind: "differs"; readonly object: StripeObject; readonly seen: string };

/** Judges an object by the intent's kind of call. */
export function verdictOf(intent: LedgerIntent, object: StripeObject): Verdict {
  const status = textField(object, "status") ?? "no status";
  const raw =
    intent.operation === "refund"
      ? refundVerdict(object, status)
      : paymentVerdict(intent, object, status);
  if (raw.kind === "dead") return raw;
  const seen = differenceOf(intent, object, raw.kind);
  return seen === null ? raw : { kind: "differs", object, seen };
}

function refundVerdict(object: StripeObject, status: string): Verdict {
  // A pending refund is made; whether it arrives is the provider's matter, and tallyd watches it.
  return status === "failed" || status === "canceled"
    ? { kind: "dead", object, status }
    : { kind: "done", object };
}

function paymentVerdict(intent: LedgerIntent, object: StripeObject, status: string): Verdict {
  switch (status) {
    case "succeeded":
      return { kind: "done", object };
    case "canceled":
      return { kind: "dead", object, status };
    case "requires_capture":
      // An authorization is all that a charge with manual capture asks for; the capture is another.
      return intent.operation === "charge" && textField(object, "capture_method") === "manual"
        ? { kind: "done", object }
        : { kind: "open", object, status };
    case "requires_payment_method":
      return (field(object, "last_payment_error") ?? null) === null
        ? { kind: "open", object, status }
        : { kind: "dead", object, status };
    default:
      return { kind: "open", object, status };
  }
}

function differenceOf(
  intent: LedgerIntent,
  object: StripeObject,
  kind: "done" | "open" | "differs",
): string | null {
  const captured = intent.operation === "capture";
  if (captured && kind === "open") return null;
  const amount = field(object, captured ? "amount_received" : "amount");
  const currency = textField(object, "currency");
  const agrees = String(amount) === String(intent.amount) && currency === intent.currency;
  return agrees ? null : `${String(amount)} ${String(currency)}`;
}

// An allow-list: no client secret, no card, no e-mail address, no name.
const KEPT = [
  "id",
  "object",
  "status",
  "amount",
  "amount_received",
  "amount_capturable",
  "currency",
  "capture_method",
  "created",
  "livemode",
] as const;
const KEPT_IDS = ["customer", "latest_charge", "payment_intent", "charge"] as const;

/** What is stored of an answer, and replayed. */
export function responseOf(object: StripeObject, metadataKey: string): JsonObject {
  const kept: Record<string, string | number | boolean | JsonObject> = {};
  for (const name of KEPT) {
    const value = field(object, name);
    if (["string", "number", "boolean"].includes(typeof value)) {
      kept[name] = value as string | number | boolean;
    }
  }
  for (const name of KEPT_IDS) {
    const id = idField(object, name);
    if (id !== null) kept[name] = id;
  }
  const mark = textField(field(object, "metadata"), metadataKey);
  return mark === null ? kept : { ...kept, metadata: { [metadataKey]: mark } };
}
