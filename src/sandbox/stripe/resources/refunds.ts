import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { invalidParam, missing } from "../errors.ts";
import { allowOnly, amount, metadata, text } from "../params.ts";
import type { ChargeRecord, RefundRecord, Wire } from "../records.ts";
import { cancelRefund, createRefund, updateRefund } from "../refunding.ts";

const CREATE_PARAMS = [
  "amount",
  "charge",
  "payment_intent",
  "reason",
  "metadata",
  "refund_application_fee",
  "reverse_transfer",
  "instructions_email",
  "customer",
  "currency",
  "origin",
];

function find(call: Call): RefundRecord {
  const refund = call.space.refunds.get(call.id);
  if (refund === undefined) throw missing("refund", call.id, "refund");
  return refund;
}

function charged(call: Call): ChargeRecord {
  const chargeId = text(call.params, "charge") ?? null;
  const intentId = text(call.params, "payment_intent") ?? null;
  if (chargeId !== null) {
    const charge = call.space.charges.get(chargeId);
    if (charge === undefined) throw missing("charge", chargeId, "charge");
    return charge;
  }
  if (intentId === null) {
    throw invalidParam("One of the following params should be provided: payment_intent, charge.");
  }
  const intent = call.space.intents.get(intentId);
  if (intent === undefined) throw missing("payment_intent", intentId, "payment_intent");
  const charge = call.space.charges.get(intent.latest_charge ?? "");
  if (charge === undefined) {
    throw invalidParam("This PaymentIntent does not have a successful charge to refund.");
  }
  return charge;
}

function create(call: Call): RefundRecord {
  allowOnly(call.params, CREATE_PARAMS);
  return createRefund(call, charged(call), {
    amount: amount(call.params, "amount"),
    reason: text(call.params, "reason") ?? null,
    metadata: metadata(call.params),
  });
}

function list(
  call: Call,
  field: "charge" | "payment_intent" | null,
  value: string,
): ReturnType<typeof listObjects> {
  const store = call.space.refunds;
  return listObjects(call, {
    store,
    list: field === null ? store.all : store.by(field, value),
    filters: ["charge", "payment_intent"],
  });
}

function listFiltered(call: Call): ReturnType<typeof listObjects> {
  const charge = text(call.params, "charge") ?? null;
  if (charge !== null) return list(call, "charge", charge);
  const intent = text(call.params, "payment_intent") ?? null;
  return intent === null ? list(call, null, "") : list(call, "payment_intent", intent);
}

const ROOT = "/v1/refunds";

/** Endpoints of refunds. */
export const REFUND_ROUTES: readonly Route[] = [
  { method: "GET", path: ROOT, handle: listFiltered },
  { method: "POST", path: ROOT, handle: (call) => answer(call, create(call)) },
  { method: "GET", path: `${ROOT}/:id`, handle: (call) => answer(call, find(call)) },
  {
    method: "POST",
    path: `${ROOT}/:id`,
    handle: (call: Call): Wire => {
      const before = find(call);
      return answer(call, updateRefund(call, before.id, metadata(call.params, before.metadata)));
    },
  },
  {
    method: "POST",
    path: `${ROOT}/:id/cancel`,
    handle: (call) => answer(call, cancelRefund(call, find(call).id)),
  },
  {
    method: "GET",
    path: "/v1/charges/:id/refunds",
    handle: (call) => list(call, "charge", call.id),
  },
];
