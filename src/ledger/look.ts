/** Looks an intent up at Stripe. Only reads, and only lists: search is an index and lags. */
import { LedgerError } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { accountOptions, metadataKeyOf, paramsOf, targetOf } from "./stripe-call.ts";
import type { CallDeps } from "./stripe-call.ts";
import { field, textField } from "./stripe-client.ts";
import type { StripeObject } from "./stripe-client.ts";
import { verdictOf } from "./verdict.ts";
import type { Verdict } from "./verdict.ts";

/** What was found. */
export type Look =
  | Verdict
  /** More than one object that moved or holds money. */
  | { readonly kind: "several"; readonly ids: readonly string[] }
  /** Nothing was found; `complete`: everything in the range was read, so there is nothing. */
  | { readonly kind: "absent"; readonly complete: boolean };

/** A range of creation times, in Unix seconds. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

// Stripe's largest page.
const PAGE = 100;
// Fifty pages are two seconds of Stripe's 25 reads a second. A busier account finds the payment by
// tallyd's webhooks sooner; here the answer is then "not complete", never "absent".
const OBJECTS_MAX = 5_000;

/** Looks for whatever belongs to the intent. `range` holds every moment at which it may be made. */
export async function lookUp(deps: CallDeps, intent: LedgerIntent, range: Range): Promise<Look> {
  const params = await paramsOf(deps, intent);
  const options = accountOptions(deps, intent);
  if (intent.operation === "capture") {
    const object = await retrieve(deps, intent, targetOf(intent, params));
    const isWaiting = textField(object, "status") === "requires_capture";
    if (!isWaiting) return verdictOf(intent, object);
    // Something was captured and more can be: by whom, the payment does not say.
    return { kind: "absent", complete: (field(object, "amount_received") ?? 0) === 0 };
  }
  if (intent.operation === "refund") {
    const payment = { payment_intent: targetOf(intent, params), limit: PAGE };
    return judge(deps, intent, deps.stripe.refunds.list(payment, options));
  }
  const known = await lookAtKnown(deps, intent);
  if (known !== null) return known;
  const customer = intent.customer ?? textField(params, "customer");
  const filter = {
    created: { gte: Math.floor(range.from), lte: Math.ceil(range.to) },
    limit: PAGE,
    ...(customer === null ? {} : { customer }),
  };
  return judge(deps, intent, deps.stripe.paymentIntents.list(filter, options));
}

/** The payment whose id is stored, where it settles the matter. */
async function lookAtKnown(deps: CallDeps, intent: LedgerIntent): Promise<Verdict | null> {
  const { chargeId } = intent;
  if (chargeId?.startsWith("pi_") !== true) return null;
  const object = await retrieve(deps, intent, chargeId);
  const verdict = verdictOf(intent, object);
  // A dead one does not rule out another that lives.
  return verdict.kind === "dead" ? null : verdict;
}

/** The payment of this id. JSON of somebody in between says nothing about it. */
async function retrieve(deps: CallDeps, intent: LedgerIntent, id: string): Promise<StripeObject> {
  const options = accountOptions(deps, intent);
  const object = await deps.stripe.paymentIntents.retrieve(id, {}, options);
  if (textField(object, "id") === id) return object;
  throw new Error(`what was read is not ${id}`);
}

async function judge(
  deps: CallDeps,
  intent: LedgerIntent,
  objects: AsyncIterable<StripeObject>,
): Promise<Look> {
  const mark = metadataKeyOf(deps);
  const found: Verdict[] = [];
  let read = 0;
  let complete = true;
  for await (const object of objects) {
    read += 1;
    if (read > OBJECTS_MAX) {
      complete = false;
      break;
    }
    const isOurs = textField(field(object, "metadata"), mark) === intent.intentId;
    if (isOurs) found.push(verdictOf(intent, object));
  }
  const alive = found.filter((one) => one.kind !== "dead");
  const [first] = alive;
  if (alive.length > 1) return { kind: "several", ids: alive.map((one) => one.object.id) };
  if (first !== undefined) return first;
  const [dead] = found;
  return dead !== undefined && complete ? dead : { kind: "absent", complete };
}

/** Turns what a read threw into the ledger's words: the row is as unknown as before. */
export function unreadable(
  error: unknown,
  intent: LedgerIntent,
  retryAfterMs: number,
): LedgerError {
  if (error instanceof LedgerError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new LedgerError("unknown", `${intent.intentId} could not be looked up: ${message}`, {
    intentId: intent.intentId,
    retryAfterMs,
    cause: error,
  });
}
