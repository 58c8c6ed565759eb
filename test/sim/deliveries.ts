/**
 * What Stripe says about a world: the events of its payments, some of them lost, and the object
 * lists
 * that bring what the lost ones said.
 */
import { random } from "./random.ts";
import type { SimCharge, SimDispute, SimPayment, SimRefund, World } from "./world.ts";
import { paymentsOf } from "./world.ts";

export type Json = Readonly<Record<string, unknown>>;

/** An object as a list or a fetch by id shows it. */
export interface Listed {
  readonly scope: string;
  readonly object: Json & { readonly id: string };
}

export interface Deliveries {
  readonly events: readonly Json[];
  /** Objects of payments that lost events, as the lists bring them. */
  readonly listed: readonly Listed[];
  /** Payments whose idempotency key no event brought. */
  readonly keyless: ReadonlySet<string>;
}

interface Draft {
  readonly type: string;
  readonly age: number;
  readonly object: Json;
  readonly key: string | null;
}

const KEPT = 0.5;

/** The deliveries of a world; `now` in unix seconds. */
export function planDeliveries(world: World, now: number): Deliveries {
  const events: Json[] = [];
  const listed: Listed[] = [];
  const keyless = new Set<string>();
  for (const payment of paymentsOf(world)) {
    const drafts = draftsOf(payment, now);
    // Of its own seed: a story that is left out changes nothing for the others.
    const rng = random(numberOf(payment.id));
    const kept = payment.lossy ? drafts.filter(() => rng.chance(KEPT)) : drafts;
    kept.forEach((draft, index) => events.push(eventOf(payment, draft, { index, now })));
    if (!kept.some((draft) => draft.key !== null)) keyless.add(payment.id);
    if (payment.lossy) listed.push(...objectsOf(payment, now));
  }
  return { events, listed, keyless };
}

/** A number that an id always gives. */
function numberOf(id: string): number {
  let sum = 7;
  for (let at = 0; at < id.length; at += 1) sum = (Math.imul(sum, 31) + id.charCodeAt(at)) | 0;
  return sum;
}

/** Every object of a payment as it stands now. */
export function objectsOf(payment: SimPayment, now: number): Listed[] {
  const { scope } = payment;
  const objects: Listed[] = [{ scope, object: intentObject(payment, now, payment.status) }];
  for (const charge of payment.charges) {
    const returned = charge.refunds.filter((one) => ["succeeded", "pending"].includes(one.status));
    const amount = returned.reduce((sum, one) => sum + one.amount, 0);
    objects.push({ scope, object: chargeObject(payment, charge, now, amount) });
    for (const one of charge.refunds) {
      const status = one.status === "undone" ? "failed" : one.status;
      objects.push({ scope, object: refundObject(payment, charge, one, status, now) });
    }
    for (const one of charge.disputes) {
      objects.push({ scope, object: disputeObject(payment, charge, one, one.status, now) });
    }
  }
  return objects;
}

function draftsOf(payment: SimPayment, now: number): Draft[] {
  const key = payment.key === "" ? null : payment.key;
  const { age } = payment;
  const intent = (status: string, charges: readonly SimCharge[] = []): Json =>
    intentObject({ ...payment, charges }, now, status);
  const drafts: Draft[] = [
    { type: "payment_intent.created", age, object: intent("requires_payment_method"), key },
  ];
  payment.charges.forEach((charge, index) => {
    const charges = payment.charges.slice(0, index + 1);
    const [own, whole, status] = attemptEvents(charge);
    const object = chargeObject(payment, charge, now, 0);
    drafts.push({ type: own, age: charge.age, object, key });
    drafts.push({ type: whole, age: charge.age, object: intent(status, charges), key });
    drafts.push(...aftermath(payment, charge, now));
  });
  const last = Math.min(age, ...payment.charges.map((charge) => charge.age)) - 2;
  if (payment.status === "requires_action") {
    const object = intent("requires_action");
    drafts.push({ type: "payment_intent.requires_action", age: last, object, key });
  }
  if (payment.status === "canceled") {
    const object = intent("canceled", payment.charges);
    drafts.push({ type: "payment_intent.canceled", age: last, object, key: null });
  }
  return drafts;
}

function attemptEvents(charge: SimCharge): readonly [string, string, string] {
  if (charge.status === "failed") {
    return ["charge.failed", "payment_intent.payment_failed", "requires_payment_method"];
  }
  if (charge.status === "pending") {
    return ["charge.pending", "payment_intent.processing", "processing"];
  }
  return charge.captured > 0
    ? ["charge.succeeded", "payment_intent.succeeded", "succeeded"]
    : ["charge.succeeded", "payment_intent.amount_capturable_updated", "requires_capture"];
}

function aftermath(payment: SimPayment, charge: SimCharge, now: number): Draft[] {
  const drafts: Draft[] = [];
  let total = 0;
  for (const one of charge.refunds) {
    const { age } = one;
    const first = {
      succeeded: "succeeded",
      undone: "succeeded",
      pending: "pending",
      failed: "pending",
    };
    const refund = (status: string): Json => refundObject(payment, charge, one, status, now);
    total += one.amount;
    const object = chargeObject(payment, charge, now, total);
    drafts.push({ type: "refund.created", age, object: refund(first[one.status]), key: null });
    drafts.push({ type: "charge.refunded", age, object, key: null });
    if (one.status === "failed" || one.status === "undone") {
      drafts.push({ type: "refund.failed", age: age - 60, object: refund("failed"), key: null });
    }
  }
  for (const one of charge.disputes) {
    const first = one.status === "warning_needs_response" ? one.status : "needs_response";
    const object = disputeObject(payment, charge, one, first, now);
    drafts.push({ type: "charge.dispute.created", age: one.age, object, key: null });
    if (one.status === first) continue;
    const closed = disputeObject(payment, charge, one, one.status, now);
    drafts.push({ type: "charge.dispute.closed", age: one.age - 60, object: closed, key: null });
  }
  return drafts;
}

function eventOf(
  payment: SimPayment,
  draft: Draft,
  input: { readonly index: number; readonly now: number },
): Json {
  const id = `evt_${payment.id}_${String(input.index)}`;
  const account = payment.scope.split("/")[0]!;
  return {
    id,
    object: "event",
    api_version: "2026-10-28.endive",
    created: input.now - draft.age,
    data: { object: draft.object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: `req_${id}`, idempotency_key: draft.key },
    type: draft.type,
    ...(account === "platform" ? {} : { account }),
  };
}

function intentObject(payment: SimPayment, now: number, status: string): Json & { id: string } {
  const last = payment.charges.at(-1);
  const received = status === "succeeded" ? (last?.captured ?? 0) : 0;
  return {
    id: payment.id,
    object: "payment_intent",
    amount: payment.amount,
    amount_received: received,
    amount_capturable: status === "requires_capture" ? payment.amount : 0,
    created: now - payment.age,
    currency: payment.currency,
    customer: payment.customer,
    description: payment.description,
    invoice: payment.invoice,
    metadata: payment.metadata,
    payment_method_types: status === "processing" ? ["sepa_debit"] : ["card"],
    last_payment_error:
      last?.status === "failed" ? { code: "card_declined", type: "card_error" } : null,
    latest_charge: last?.id ?? null,
    status,
  };
}

function chargeObject(
  payment: SimPayment,
  charge: SimCharge,
  now: number,
  refunded: number,
): Json & { id: string } {
  return {
    id: charge.id,
    object: "charge",
    amount: payment.amount,
    amount_captured: charge.captured,
    amount_refunded: refunded,
    captured: charge.status === "succeeded" && charge.captured > 0,
    created: now - charge.age,
    currency: payment.currency,
    customer: payment.customer,
    description: payment.description,
    disputed: charge.disputes.length > 0,
    failure_code: charge.status === "failed" ? "card_declined" : null,
    invoice: payment.invoice,
    metadata: payment.metadata,
    paid: charge.status === "succeeded",
    payment_intent: payment.id,
    refunded: refunded > 0 && refunded >= charge.captured,
    status: charge.status,
  };
}

function refundObject(
  payment: SimPayment,
  charge: SimCharge,
  refund: SimRefund,
  status: string,
  now: number,
): Json & { id: string } {
  return {
    id: refund.id,
    object: "refund",
    amount: refund.amount,
    charge: charge.id,
    created: now - refund.age,
    currency: payment.currency,
    metadata: {},
    payment_intent: payment.id,
    reason: "duplicate",
    failure_reason: status === "failed" ? "lost_or_stolen_card" : null,
    status,
  };
}

function disputeObject(
  payment: SimPayment,
  charge: SimCharge,
  dispute: SimDispute,
  status: string,
  now: number,
): Json & { id: string } {
  return {
    id: dispute.id,
    object: "dispute",
    amount: dispute.amount,
    charge: charge.id,
    created: now - dispute.age,
    currency: payment.currency,
    is_charge_refundable: status.startsWith("warning_"),
    payment_intent: payment.id,
    reason: dispute.reason,
    status,
  };
}
