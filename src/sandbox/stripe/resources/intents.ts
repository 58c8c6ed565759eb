import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { cancelIntent, captureIntent } from "../capturing.ts";
import { confirmIntent } from "../confirming.ts";
import { invalidParam, missing } from "../errors.ts";
import { emit } from "../events.ts";
import type { Params } from "../form.ts";
import { putIntent, unexpectedState } from "../job.ts";
import { amount, asWire, flag, group, metadata, requiredText, text, texts } from "../params.ts";
import type { PaymentIntentRecord, Wire } from "../records.ts";
import { searchObjects } from "../search.ts";
import { plainStore } from "../space.ts";
import { ASYNC_CAPTURE_BY_DEFAULT, atLeast, METHOD_TYPES_READ_ONLY } from "../versions.ts";
import { useMethod } from "./methods.ts";

/** Stripe's largest amount is eight digits; twelve for the rupiah (currencies page). */
const AMOUNT_MAX = 99_999_999n;
const AMOUNT_MAX_IDR = 999_999_999_999n;

function find(call: Call): PaymentIntentRecord {
  const intent = call.space.intents.get(call.id);
  if (intent === undefined) throw missing("payment_intent", call.id, "intent");
  return intent;
}

/** A positive amount within the currency's limit. */
export function requiredAmount(params: Params, currency: string): bigint {
  requiredText(params, "amount");
  const value = amount(params, "amount") ?? 0n;
  if (value < 1n) {
    throw invalidParam("Invalid positive integer", "amount", "parameter_invalid_integer");
  }
  if (value > (currency === "idr" ? AMOUNT_MAX_IDR : AMOUNT_MAX)) {
    throw invalidParam("Amount has too many digits", "amount", "amount_too_large");
  }
  return value;
}

/** A currency code in lower case. */
export function requiredCurrency(params: Params): string {
  const currency = requiredText(params, "currency").toLowerCase();
  if (!/^[a-z]{3}$/.test(currency)) throw invalidParam(`Invalid currency: ${currency}`, "currency");
  return currency;
}

/** A customer that exists, or null. */
export function knownCustomer(call: Call): string | null {
  const id = text(call.params, "customer") ?? null;
  if (id !== null && plainStore(call.space, "customer").get(id) === undefined) {
    throw missing("customer", id, "customer", 400);
  }
  return id;
}

function methodTypes(call: Call): readonly string[] {
  const types = texts(call.params, "payment_method_types");
  // Only where the caller itself names the version: clients that name none still write it.
  if (types !== undefined && call.versionNamed && atLeast(call.version, METHOD_TYPES_READ_ONLY)) {
    throw invalidParam(
      "payment_method_types can no longer be set in this API version.",
      "payment_method_types",
      "payment_method_types_no_longer_supported",
    );
  }
  return types ?? ["card"];
}

function draft(call: Call): PaymentIntentRecord {
  const { params, world, space } = call;
  const currency = requiredCurrency(params);
  const asynchronous = atLeast(call.version, ASYNC_CAPTURE_BY_DEFAULT);
  return {
    id: world.ids.next("pi"),
    object: "payment_intent",
    created: world.clock.seconds(),
    livemode: space.livemode,
    metadata: metadata(params),
    amount: requiredAmount(params, currency),
    amount_capturable: 0n,
    amount_received: 0n,
    application_fee_amount: amount(params, "application_fee_amount") ?? null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method:
      text(params, "capture_method") ?? (asynchronous ? "automatic_async" : "automatic"),
    confirmation_method: text(params, "confirmation_method") ?? "automatic",
    currency,
    customer: knownCustomer(call),
    description: text(params, "description") ?? null,
    invoice: null,
    last_payment_error: null,
    latest_charge: null,
    next_action: null,
    payment_method: null,
    payment_method_types: methodTypes(call),
    receipt_email: text(params, "receipt_email") ?? null,
    shipping: asWire(group(params, "shipping")),
    status: "requires_payment_method",
    transfer_data: asWire(group(params, "transfer_data")),
  };
}

/** Gives an intent the payment method that the request names, if it names one. */
function withMethod(call: Call, intent: PaymentIntentRecord): PaymentIntentRecord {
  const method = useMethod(call);
  if (method === null) return intent;
  const status =
    intent.status === "requires_payment_method" ? "requires_confirmation" : intent.status;
  return { ...intent, payment_method: method, status };
}

function create(call: Call): PaymentIntentRecord {
  const confirm = flag(call.params, "confirm") ?? false;
  const intent = putIntent(call, withMethod(call, draft(call)));
  emit(call.world, call.space, {
    type: "payment_intent.created",
    record: intent,
    cause: call.cause,
  });
  return confirm ? confirmIntent(call, intent) : intent;
}

function update(call: Call): PaymentIntentRecord {
  const { params } = call;
  const intent = find(call);
  const changed = amount(params, "amount");
  const final = intent.status === "succeeded" || intent.status === "canceled";
  if (final && changed !== undefined) throw unexpectedState(call, intent, "updated");
  return putIntent(call, {
    ...withMethod(call, intent),
    amount: changed ?? intent.amount,
    customer: params["customer"] === undefined ? intent.customer : knownCustomer(call),
    description:
      params["description"] === undefined
        ? intent.description
        : (text(params, "description") ?? null),
    metadata: metadata(params, intent.metadata),
    receipt_email: text(params, "receipt_email") ?? intent.receipt_email,
    shipping: asWire(group(params, "shipping")) ?? intent.shipping,
  });
}

function list(call: Call): ReturnType<typeof listObjects> {
  const store = call.space.intents;
  const customer = text(call.params, "customer") ?? null;
  return listObjects(call, {
    store,
    list: customer === null ? store.all : store.by("customer", customer),
    filters: ["customer", "customer_account"],
  });
}

const ROOT = "/v1/payment_intents";

/** Endpoints of payment intents. */
export const INTENT_ROUTES: readonly Route[] = [
  { method: "GET", path: ROOT, handle: list },
  { method: "POST", path: ROOT, handle: (call) => answer(call, create(call)) },
  {
    method: "GET",
    path: `${ROOT}/search`,
    handle: (call) => searchObjects(call, call.space.intents),
  },
  { method: "GET", path: `${ROOT}/:id`, handle: (call) => answer(call, find(call)) },
  { method: "POST", path: `${ROOT}/:id`, handle: (call) => answer(call, update(call)) },
  {
    method: "POST",
    path: `${ROOT}/:id/confirm`,
    handle: (call) => answer(call, confirmIntent(call, withMethod(call, find(call)))),
  },
  {
    method: "POST",
    path: `${ROOT}/:id/capture`,
    handle: (call: Call): Wire => {
      const part = amount(call.params, "amount_to_capture");
      return answer(call, captureIntent(call, find(call), part));
    },
  },
  {
    method: "POST",
    path: `${ROOT}/:id/cancel`,
    handle: (call: Call): Wire => {
      const reason = text(call.params, "cancellation_reason") ?? null;
      return answer(call, cancelIntent(call, find(call), reason));
    },
  },
];
