import { listAny } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { group, text } from "../params.ts";
import type { PaymentIntentRecord, Wire } from "../records.ts";
import { minor } from "../shape-parts.ts";
import { SortedList } from "../store.ts";

const PREFIX = "inpay_";
const INTENT_PREFIX = "pi_";

/**
 * Since basil an intent no longer names its invoice; this object ties the two. It is derived from
 * the intent, so its id is the intent's with another prefix.
 */
function shape(intent: PaymentIntentRecord): Wire {
  const paid = intent.status === "succeeded";
  return {
    id: PREFIX + intent.id.slice(INTENT_PREFIX.length),
    object: "invoice_payment",
    amount_paid: paid ? minor(intent.amount_received) : null,
    amount_requested: minor(intent.amount),
    created: intent.created,
    currency: intent.currency,
    invoice: intent.invoice,
    is_default: true,
    livemode: intent.livemode,
    payment: { payment_intent: intent.id, type: "payment_intent" },
    status: paid ? "paid" : intent.status === "canceled" ? "canceled" : "open",
    status_transitions: {
      canceled_at: intent.canceled_at,
      paid_at: paid ? intent.created : null,
    },
  };
}

function intentCursor(call: Call, name: string): Record<string, string> {
  const id = text(call.params, name);
  return id === undefined || id === null ? {} : { [name]: INTENT_PREFIX + id.slice(PREFIX.length) };
}

function list(call: Call): Wire {
  const store = call.space.intents;
  const invoice = text(call.params, "invoice") ?? null;
  const intentId = text(group(call.params, "payment") ?? {}, "payment_intent") ?? null;
  const one = new SortedList<PaymentIntentRecord>();
  const entry = intentId === null ? undefined : store.entry(intentId);
  if (entry !== undefined) one.add(entry);
  const byInvoice = invoice === null ? store.all : store.by("invoice", invoice);
  const cursors = {
    ...intentCursor(call, "starting_after"),
    ...intentCursor(call, "ending_before"),
  };
  return listAny(
    { ...call, params: { ...call.params, ...cursors } },
    {
      store,
      list: intentId === null ? byInvoice : one,
      filters: ["invoice", "payment", "status"],
      keep: (intent) => intent.invoice !== null,
      show: shape,
    },
  );
}

/** Which intent paid which invoice. */
export const INVOICE_ROUTES: readonly Route[] = [
  { method: "GET", path: "/v1/invoice_payments", handle: list },
];
