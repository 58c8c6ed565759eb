import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { missing } from "../errors.ts";
import { emit } from "../events.ts";
import type { Params } from "../form.ts";
import { group, metadata, requiredText, text } from "../params.ts";
import type { PlainRecord, Wire } from "../records.ts";
import { plainStore } from "../space.ts";
import { BILLING_DETAILS, isTestToken, tokenOfNumber } from "../test-cards.ts";

const KIND = "payment_method";

interface MethodDraft {
  readonly type: string;
  readonly testToken: string | null;
  readonly customer: string | null;
}

const CARD = {
  brand: "visa",
  country: "US",
  display_brand: "visa",
  exp_month: 8,
  exp_year: 2031,
  fingerprint: "Vb7dQ2mXr0TzYk4N",
  funding: "credit",
  last4: "4242",
};

function put(call: Call, method: PlainRecord): PlainRecord {
  return plainStore(call.space, KIND).put(method, call.world.clock.now());
}

function make(call: Call, draft: MethodDraft): PlainRecord {
  const given = group(call.params, "billing_details") ?? {};
  return put(call, {
    id: call.world.ids.next("pm"),
    object: KIND,
    created: call.world.clock.seconds(),
    livemode: call.space.livemode,
    metadata: {},
    testToken: draft.testToken,
    fields: {
      allow_redisplay: "unspecified",
      billing_details: { ...BILLING_DETAILS, ...given },
      ...(draft.type === "card" ? { card: CARD } : { [draft.type]: { last4: "3000" } }),
      customer: draft.customer,
      customer_account: null,
      type: draft.type,
    },
  });
}

function cardToken(data: Params): string | null {
  const card = group(data, "card");
  if (card === undefined) return null;
  const token = text(card, "token");
  if (token !== undefined && token !== null) return token;
  const number = text(card, "number");
  return number === undefined || number === null ? null : tokenOfNumber(number);
}

/** A method by id; a shared test token becomes a method of its own, as at Stripe. */
export function methodByIdOrToken(call: Call, id: string): PlainRecord {
  const stored = plainStore(call.space, KIND).get(id);
  if (stored !== undefined) return stored;
  if (!isTestToken(id)) throw missing("PaymentMethod", id, "payment_method", 400);
  const type = id.startsWith("pm_usBankAccount") ? "us_bank_account" : "card";
  return make(call, { type, testToken: id, customer: null });
}

/** The id of the method that a request names (by id, token or inline data); null without one. */
export function useMethod(call: Call): string | null {
  const id = text(call.params, "payment_method");
  if (id !== undefined && id !== null) return methodByIdOrToken(call, id).id;
  const data = group(call.params, "payment_method_data");
  if (data === undefined) return null;
  const type = requiredText(data, "type");
  return make(call, { type, testToken: cardToken(data), customer: null }).id;
}

function find(call: Call): PlainRecord {
  const method = plainStore(call.space, KIND).get(call.id);
  if (method === undefined) throw missing("PaymentMethod", call.id, "payment_method");
  return method;
}

function create(call: Call): PlainRecord {
  const type = requiredText(call.params, "type");
  const token = cardToken(call.params);
  const method = make(call, { type, testToken: token, customer: null });
  return put(call, { ...method, metadata: metadata(call.params) });
}

function attach(call: Call, customer: string | null): PlainRecord {
  const before = customer === null ? find(call) : methodByIdOrToken(call, call.id);
  const method = put(call, { ...before, fields: { ...before.fields, customer } });
  const type = customer === null ? "payment_method.detached" : "payment_method.attached";
  emit(call.world, call.space, { type, record: method, cause: call.cause });
  return method;
}

const ROOT = "/v1/payment_methods";

/** Endpoints of payment methods. */
export const METHOD_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: ROOT,
    handle: (call: Call): Wire => {
      const store = plainStore(call.space, KIND);
      const customer = text(call.params, "customer") ?? null;
      const list = customer === null ? store.all : store.by("customer", customer);
      return listObjects(call, { store, list, filters: ["customer", "type"] });
    },
  },
  { method: "POST", path: ROOT, handle: (call) => answer(call, create(call)) },
  { method: "GET", path: `${ROOT}/:id`, handle: (call) => answer(call, find(call)) },
  {
    method: "POST",
    path: `${ROOT}/:id/attach`,
    handle: (call) => answer(call, attach(call, requiredText(call.params, "customer"))),
  },
  {
    method: "POST",
    path: `${ROOT}/:id/detach`,
    handle: (call) => answer(call, attach(call, null)),
  },
];
