import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { closeDispute, updateDispute } from "../disputing.ts";
import { missing } from "../errors.ts";
import { asWire, flag, group, metadata, text } from "../params.ts";
import type { DisputeRecord } from "../records.ts";

function find(call: Call): DisputeRecord {
  const dispute = call.space.disputes.get(call.id);
  if (dispute === undefined) throw missing("dispute", call.id, "dispute");
  return dispute;
}

function update(call: Call): DisputeRecord {
  const dispute = find(call);
  return updateDispute(call, dispute, {
    metadata: metadata(call.params, dispute.metadata),
    evidence: asWire(group(call.params, "evidence")) ?? {},
    submit: flag(call.params, "submit") ?? call.params["evidence"] !== undefined,
  });
}

function list(call: Call): ReturnType<typeof listObjects> {
  const store = call.space.disputes;
  const charge = text(call.params, "charge") ?? null;
  const intent = text(call.params, "payment_intent") ?? null;
  const listed =
    charge !== null
      ? store.by("charge", charge)
      : intent !== null
        ? store.by("payment_intent", intent)
        : store.all;
  return listObjects(call, { store, list: listed, filters: ["charge", "payment_intent"] });
}

const ROOT = "/v1/disputes";

/** Endpoints of disputes. Closing one by the API accepts it as lost. */
export const DISPUTE_ROUTES: readonly Route[] = [
  { method: "GET", path: ROOT, handle: list },
  { method: "GET", path: `${ROOT}/:id`, handle: (call) => answer(call, find(call)) },
  { method: "POST", path: `${ROOT}/:id`, handle: (call) => answer(call, update(call)) },
  {
    method: "POST",
    path: `${ROOT}/:id/close`,
    handle: (call) => answer(call, closeDispute(call, find(call), false)),
  },
];
