import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { bookNow, makeCharge, mirrorDestination, putCharge } from "../charging.ts";
import type { ChargeDraft } from "../charging.ts";
import { createDispute } from "../disputing.ts";
import { ApiError, missing } from "../errors.ts";
import { emit } from "../events.ts";
import { amount, asWire, flag, group, metadata, text } from "../params.ts";
import type { ChargeRecord } from "../records.ts";
import { searchObjects } from "../search.ts";
import { behaviourOf, BILLING_DETAILS, declineMessage } from "../test-cards.ts";
import { captureIntent } from "../capturing.ts";
import { knownCustomer, requiredAmount, requiredCurrency } from "./intents.ts";
import { methodByIdOrToken } from "./methods.ts";

function find(call: Call): ChargeRecord {
  const charge = call.space.charges.get(call.id);
  if (charge === undefined) throw missing("charge", call.id, "id");
  return charge;
}

/** The legacy way to charge, without an intent. */
function create(call: Call): ChargeRecord {
  const { params, world, space, cause } = call;
  const currency = requiredCurrency(params);
  const source = text(params, "source") ?? "tok_visa";
  const method = methodByIdOrToken(call, source);
  const behaviour = behaviourOf("card", method.testToken);
  const capture = flag(params, "capture") ?? true;
  const draft: ChargeDraft = {
    amount: requiredAmount(params, currency),
    currency,
    captured: capture,
    customer: knownCustomer(call),
    description: text(params, "description") ?? null,
    metadata: metadata(params),
    payment_method: method.id,
    transfer_data: asWire(group(params, "transfer_data")),
    refundOutcome: behaviour.refundOutcome,
  };
  if (behaviour.kind === "declines") {
    const { code, declineCode } = behaviour;
    const message = declineMessage(behaviour);
    const failure = { status: "failed", failure_code: code, failure_message: message };
    const made = makeCharge(
      world,
      space,
      { ...draft, ...failure, captured: false },
      BILLING_DETAILS,
    );
    const record = putCharge(world, space, made);
    emit(world, space, { type: "charge.failed", record, cause });
    const body = {
      type: "card_error",
      code,
      decline_code: declineCode,
      message,
      charge: record.id,
    };
    throw new ApiError(402, body, { saved: true });
  }
  const made = mirrorDestination(world, space, makeCharge(world, space, draft, BILLING_DETAILS));
  const record = capture ? bookNow(world, space, made) : putCharge(world, space, made);
  emit(world, space, { type: "charge.succeeded", record, cause });
  if (behaviour.kind === "disputes") {
    const { disputeReason: reason, disputeStatus: status } = behaviour;
    createDispute(call, record.id, { reason, status });
  }
  return record;
}

function update(call: Call): ChargeRecord {
  const { world, space, cause, params } = call;
  const before = find(call);
  const description = text(params, "description");
  const record = putCharge(world, space, {
    ...before,
    description: description === undefined ? before.description : description,
    metadata: metadata(params, before.metadata),
  });
  emit(world, space, { type: "charge.updated", record, before, cause });
  return record;
}

function capture(call: Call): ChargeRecord {
  const { world, space, cause } = call;
  const before = find(call);
  const intent = space.intents.get(before.payment_intent ?? "");
  const part = amount(call.params, "amount");
  if (intent !== undefined) {
    captureIntent(call, intent, part);
    return find(call);
  }
  const captured = part ?? before.amount;
  const record = bookNow(world, space, {
    ...before,
    captured: true,
    amount_captured: captured,
    amount_refunded: before.amount - captured,
  });
  emit(world, space, { type: "charge.captured", record, before, cause });
  return record;
}

function list(call: Call): ReturnType<typeof listObjects> {
  const store = call.space.charges;
  const intent = text(call.params, "payment_intent") ?? null;
  const customer = text(call.params, "customer") ?? null;
  const listed =
    intent !== null
      ? store.by("payment_intent", intent)
      : customer !== null
        ? store.by("customer", customer)
        : store.all;
  return listObjects(call, {
    store,
    list: listed,
    filters: ["payment_intent", "customer", "transfer_group"],
    keep: (charge) => customer === null || charge.customer === customer,
  });
}

const ROOT = "/v1/charges";

/** Endpoints of charges. */
export const CHARGE_ROUTES: readonly Route[] = [
  { method: "GET", path: ROOT, handle: list },
  { method: "POST", path: ROOT, handle: (call) => answer(call, create(call)) },
  {
    method: "GET",
    path: `${ROOT}/search`,
    handle: (call) => searchObjects(call, call.space.charges),
  },
  { method: "GET", path: `${ROOT}/:id`, handle: (call) => answer(call, find(call)) },
  { method: "POST", path: `${ROOT}/:id`, handle: (call) => answer(call, update(call)) },
  { method: "POST", path: `${ROOT}/:id/capture`, handle: (call) => answer(call, capture(call)) },
];
