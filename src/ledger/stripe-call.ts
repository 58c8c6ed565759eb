/** The one place of the ledger that sends something which moves money, and what it sends. */
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { objectOf, textOf } from "./intent.ts";
import { outcomeOf, outcomeOfAnswer } from "./outcome.ts";
import type { Outcome } from "./outcome.ts";
import { onRequest } from "./stripe-client.ts";
import type { StripeClient, StripeObject } from "./stripe-client.ts";

/** What a call needs. */
export interface CallDeps {
  /** The official SDK's client. */
  readonly stripe: StripeClient;
  /** Metadata key that carries the intent's id; default `intent_id`, as tallyd's. */
  readonly metadataKey?: string;
  /** Metadata key that carries the reference; default `reference`, as tallyd's. */
  readonly referenceKey?: string;
  /** Connected accounts (acct_…) among the `account_id`s; others are the team's own names. */
  readonly accounts?: readonly string[];
  /**
   * Further parameters of the provider's call, for tables without a column `metadata`. They must
   * follow from the intent alone: the provider refuses a key that comes with others.
   */
  readonly paramsOf?: (intent: LedgerIntent) => JsonObject | Promise<JsonObject>;
}

/** A call that is ready to be sent. */
export interface Call {
  readonly intent: LedgerIntent;
  readonly send: (timeoutMs: number) => Promise<StripeObject>;
}

/** The payment that a refund or a capture is about; throws `invalid`. */
export function targetOf(intent: LedgerIntent, params: JsonObject): string {
  const target = textOf(params["payment_intent"]);
  if (target !== null) return target;
  throw new LedgerError(
    "invalid",
    `${intent.intentId} is a ${intent.operation} and names no payment_intent: mint it with one`,
    { intentId: intent.intentId },
  );
}

/** The metadata mark by which the payment of an intent is found again. */
export function metadataKeyOf(deps: CallDeps): string {
  return deps.metadataKey ?? "intent_id";
}

/** The request options of a connected account; none for the platform's own. */
export function accountOptions(deps: CallDeps, intent: LedgerIntent): { stripeAccount?: string } {
  const isConnected = deps.accounts?.includes(intent.accountId) === true;
  return isConnected ? { stripeAccount: intent.accountId } : {};
}

/** The further parameters of the call. */
export async function paramsOf(deps: CallDeps, intent: LedgerIntent): Promise<JsonObject> {
  return { ...intent.request, ...(await deps.paramsOf?.(intent)) };
}

// The row decides about these; a second opinion in the parameters could only contradict it.
const OF_THE_ROW = ["amount", "amount_to_capture", "currency", "confirm"];

/** Builds the call of an intent from its row alone. Throws `invalid`. */
export async function prepareCall(deps: CallDeps, intent: LedgerIntent): Promise<Call> {
  const params = await paramsOf(deps, intent);
  const twice = OF_THE_ROW.filter((name) => params[name] !== undefined);
  // A payment is looked up by its customer: two of them, and it would not be found.
  const payer = params["customer"] ?? intent.customer;
  if (intent.customer !== null && payer !== intent.customer) twice.push("customer");
  if (twice.length > 0) {
    throw new LedgerError(
      "invalid",
      `the parameters of ${intent.intentId} say ${twice.join(", ")}, which the row says already`,
      { intentId: intent.intentId },
    );
  }
  const options = { idempotencyKey: intent.idempotencyKey, ...accountOptions(deps, intent) };
  // The SDK's own retries are off: their errors would hide what the attempts before them did.
  const timed = (timeout: number): object => ({ ...options, timeout, maxNetworkRetries: 0 });
  const { stripe } = deps;
  const amount = minorUnits(intent);
  const marked = { ...params, metadata: metadataOf(deps, intent, params) };
  switch (intent.operation) {
    case "charge": {
      const customer = intent.customer === null ? {} : { customer: intent.customer };
      const body = { ...customer, ...marked, amount, currency: intent.currency, confirm: true };
      return { intent, send: (timeout) => stripe.paymentIntents.create(body, timed(timeout)) };
    }
    case "refund": {
      targetOf(intent, params);
      const body = { ...marked, amount };
      return { intent, send: (timeout) => stripe.refunds.create(body, timed(timeout)) };
    }
    case "capture": {
      // No mark of its own: the payment's metadata name the intent of the charge.
      const target = targetOf(intent, params);
      requireWhole(intent, params);
      const body = { ...params, payment_intent: undefined, amount_to_capture: amount };
      return {
        intent,
        send: (timeout) => stripe.paymentIntents.capture(target, body, timed(timeout)),
      };
    }
  }
}

/** Which of several captures of one payment ran cannot be read from it after a lost answer. */
function requireWhole(intent: LedgerIntent, params: JsonObject): void {
  if (params["final_capture"] !== false) return;
  throw new LedgerError(
    "invalid",
    `${intent.intentId} has final_capture false, and one capture of a payment is allowed: leave ` +
      "it out; nothing was sent",
    { intentId: intent.intentId },
  );
}

function metadataOf(deps: CallDeps, intent: LedgerIntent, params: JsonObject): JsonObject {
  return {
    ...objectOf(params["metadata"]),
    ...(intent.reference === null ? {} : { [deps.referenceKey ?? "reference"]: intent.reference }),
    [metadataKeyOf(deps)]: intent.intentId,
  };
}

function minorUnits(intent: LedgerIntent): number {
  const amount = Number(intent.amount);
  if (Number.isSafeInteger(amount) && amount > 0) return amount;
  throw new LedgerError(
    "invalid",
    `${intent.intentId} has the amount ${intent.amount}: 1 to 2^53 is allowed`,
    { intentId: intent.intentId },
  );
}

/** Sends a call, counts the SDK's attempts, and classes how it ended. */
export async function sendCall(deps: CallDeps, call: Call, timeoutMs: number): Promise<Outcome> {
  let attempts = 0;
  const stopCounting = onRequest(deps.stripe, (request) => {
    if (request.idempotency_key === call.intent.idempotencyKey) attempts += 1;
  });
  try {
    return outcomeOfAnswer(await call.send(timeoutMs));
  } catch (error) {
    return outcomeOf(error, attempts);
  } finally {
    stopCounting();
  }
}
