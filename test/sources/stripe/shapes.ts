/** Objects of Stripe's, small, with every place for personal data filled. */
import { readFileSync } from "node:fs";

import type { Fact, Reading } from "../../../src/core/facts.ts";
import type { EventSettings } from "../../../src/sources/stripe/read-event.ts";
import { readObject } from "../../../src/sources/stripe/read-object.ts";

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

export const SCOPE = "platform/test";

/** Settings without an ownership predicate, one connected account, test mode. */
export const SETTINGS: EventSettings = {
  metadataKey: "intent_id",
  referenceKey: "order",
  keyMetadata: ["idem"],
  owned: null,
  accounts: ["acct_c"],
  livemode: false,
};

/** Words of the shapes below that must never be stored. */
export const PERSONAL = [
  "pat@example.org",
  "Pat Sample",
  "Sample Street",
  "4242",
  "_secret_",
  "+15550100",
  "fpSampleCard",
  "192.0.2.1",
] as const;

/** A time of the tests, in seconds after their beginning. */
export function at(second: number): Date {
  return new Date((1_700_000_000 + second) * 1000);
}

/** A charge with everything in it; `fields` go on top. */
export function charge(fields: Json = {}): Json {
  return {
    id: "ch_1",
    object: "charge",
    amount: 2000,
    amount_captured: 2000,
    amount_refunded: 0,
    captured: true,
    created: 1_700_000_001,
    currency: "usd",
    customer: "cus_1",
    description: "Order for Pat Sample",
    disputed: false,
    metadata: {},
    paid: true,
    payment_intent: "pi_1",
    billing_details: { email: "pat@example.org", name: "Pat Sample", phone: "+15550100" },
    payment_method_details: { type: "card", card: { fingerprint: "fpSampleCard", last4: "4242" } },
    receipt_email: "pat@example.org",
    refunded: false,
    status: "succeeded",
    ...fields,
  };
}

/** A payment intent without any charge in it; `fields` go on top. */
export function paymentIntent(fields: Json = {}): Json {
  return {
    id: "pi_1",
    object: "payment_intent",
    amount: 2000,
    amount_capturable: 0,
    amount_received: 0,
    client_secret: "pi_1_secret_sample",
    created: 1_700_000_000,
    currency: "usd",
    customer: "cus_1",
    description: "Order for Pat Sample",
    last_payment_error: null,
    metadata: {},
    receipt_email: "pat@example.org",
    shipping: { name: "Pat Sample", address: { line1: "1 Sample Street" } },
    status: "requires_payment_method",
    ...fields,
  };
}

/** A succeeded payment intent that names its charge; `fields` go on top. */
export function paid(fields: Json = {}): Json {
  return paymentIntent({
    status: "succeeded",
    amount_received: 2000,
    latest_charge: "ch_1",
    ...fields,
  });
}

/** A refund; `fields` go on top. */
export function refund(fields: Json = {}): Json {
  return {
    id: "re_1",
    object: "refund",
    amount: 500,
    charge: "ch_1",
    created: 1_700_000_005,
    currency: "usd",
    metadata: {},
    payment_intent: "pi_1",
    reason: "duplicate",
    status: "succeeded",
    ...fields,
  };
}

/** A dispute; `fields` go on top. */
export function dispute(fields: Json = {}): Json {
  return {
    id: "dp_1",
    object: "dispute",
    amount: 2000,
    charge: "ch_1",
    created: 1_700_000_006,
    currency: "usd",
    evidence: { customer_name: "Pat Sample", customer_purchase_ip: "192.0.2.1" },
    is_charge_refundable: false,
    payment_intent: "pi_1",
    reason: "duplicate",
    status: "needs_response",
    ...fields,
  };
}

/** A snapshot event around `object`; `fields` go on top. */
export function event(type: string, object: unknown, fields: Json = {}): Json {
  return {
    id: "evt_1",
    object: "event",
    api_version: "2026-10-28.endive",
    created: 1_700_000_010,
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: "req_1", idempotency_key: "key-1" },
    type,
    ...fields,
  };
}

/** A stored sample by its file name. */
export function sample(name: string): Json & { readonly data: { readonly object: unknown } } {
  const file = new URL(`../../fixtures/stripe/${name}`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as Json & { readonly data: { object: unknown } };
}

/** Reads an object as an event's at second 10, or as a fetch at `fetchedAt`. */
export function read(
  object: unknown,
  options: { eventType?: string; second?: number } = {},
): Reading {
  return readObject({
    object,
    scope: SCOPE,
    settings: SETTINGS,
    version: { at: at(options.second ?? 10), source: "event" },
    ...(options.eventType === undefined ? {} : { eventType: options.eventType }),
  });
}

/** The facts of one kind. */
export function ofKind<K extends Fact["kind"]>(
  reading: Reading,
  kind: K,
): Extract<Fact, { readonly kind: K }>[] {
  return reading.facts.filter((fact): fact is Extract<Fact, { kind: K }> => fact.kind === kind);
}
