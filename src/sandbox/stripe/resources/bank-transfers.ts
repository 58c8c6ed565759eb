import type { Call, Route } from "../call.ts";
import { payByTransfer } from "../confirming.ts";
import { missing } from "../errors.ts";
import { emit } from "../events.ts";
import { requiredAmount, requiredCurrency } from "./intents.ts";
import { minor } from "../shape-parts.ts";
import { plainStore } from "../space.ts";
import type { Wire } from "../records.ts";

/** Money arrives from a customer: it pays the newest intent that waits for it, or a part of it. */
function fund(call: Call): Wire {
  const { world, space, cause } = call;
  if (plainStore(space, "customer").get(call.id) === undefined) {
    throw missing("customer", call.id, "customer");
  }
  const currency = requiredCurrency(call.params);
  const amount = requiredAmount(call.params, currency);
  const waiting = space.intents
    .records("customer", call.id)
    .findLast((intent) => intent.status === "requires_action" && intent.currency === currency);
  if (waiting !== undefined && amount >= waiting.amount) payByTransfer(call, waiting);
  else if (waiting !== undefined) {
    emit(world, space, { type: "payment_intent.partially_funded", record: waiting, cause });
  }
  return {
    id: world.ids.next("ccsbtxn"),
    object: "customer_cash_balance_transaction",
    created: world.clock.seconds(),
    currency,
    customer: call.id,
    ending_balance: minor(amount),
    livemode: space.livemode,
    net_amount: minor(amount),
    type: "funded",
  };
}

/** Test helper that makes a bank transfer arrive. */
export const TRANSFER_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/test_helpers/customers/:id/fund_cash_balance",
    handle: fund,
  },
];
