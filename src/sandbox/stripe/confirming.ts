import { bookLater, bookNow, makeCharge, mirrorDestination, putCharge } from "./charging.ts";
import type { ChargeDraft } from "./charging.ts";
import { createDispute } from "./disputing.ts";
import { ApiError, wrongState } from "./errors.ts";
import { emit } from "./events.ts";
import type { ChargeRecord, PaymentIntentRecord, Wire } from "./records.ts";
import { putIntent, shown, unexpectedState } from "./job.ts";
import type { Job } from "./job.ts";
import { plainStore } from "./space.ts";
import { behaviourOf, BILLING_DETAILS, declineMessage } from "./test-cards.ts";
import type { CardBehaviour } from "./test-cards.ts";

/** Statuses from which a confirmation may go on. */
const CONFIRMABLE = ["requires_payment_method", "requires_confirmation", "requires_action"];

interface Method {
  readonly type: string;
  readonly billing: Wire;
  readonly behaviour: CardBehaviour;
}

function methodOf(job: Job, intent: PaymentIntentRecord): Method {
  const stored = plainStore(job.space, "payment_method").get(intent.payment_method ?? "");
  const named = stored?.fields["type"];
  const type = typeof named === "string" ? named : "card";
  const billing = stored?.fields["billing_details"];
  const given = typeof billing === "object" && billing !== null ? (billing as Wire) : {};
  return {
    type,
    billing: { ...BILLING_DETAILS, ...given },
    behaviour: behaviourOf(type, stored?.testToken ?? null),
  };
}

function chargeDraft(intent: PaymentIntentRecord, method: Method): ChargeDraft {
  return {
    amount: intent.amount,
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    invoice: intent.invoice,
    // Copied once; a later change of the intent's metadata does not reach the charge.
    metadata: intent.metadata,
    payment_intent: intent.id,
    payment_method: intent.payment_method,
    payment_method_type: method.type,
    receipt_email: intent.receipt_email,
    shipping: intent.shipping,
    transfer_data: intent.transfer_data,
    refundOutcome: method.behaviour.refundOutcome,
  };
}

function decline(job: Job, intent: PaymentIntentRecord, method: Method): never {
  const { world, space, cause } = job;
  const { code, declineCode } = method.behaviour;
  const message = declineMessage(method.behaviour);
  const draft: ChargeDraft = {
    ...chargeDraft(intent, method),
    status: "failed",
    failure_code: code,
    failure_message: message,
    outcome: {
      network_status: "declined_by_network",
      reason: declineCode,
      risk_level: "normal",
      seller_message: "The bank did not return any further details with this decline.",
      type: "issuer_declined",
    },
  };
  const charge = putCharge(world, space, makeCharge(world, space, draft, method.billing));
  const error: Wire = {
    type: "card_error",
    code,
    decline_code: declineCode,
    message,
    charge: charge.id,
  };
  const failed = putIntent(job, {
    ...intent,
    status: "requires_payment_method",
    latest_charge: charge.id,
    last_payment_error: error,
    payment_method: null,
    next_action: null,
  });
  emit(world, space, { type: "charge.failed", record: charge, cause });
  emit(world, space, { type: "payment_intent.payment_failed", record: failed, cause });
  // The decline is a result of the endpoint, so the key keeps it (facts on idempotency).
  throw new ApiError(
    402,
    {
      type: "card_error",
      code,
      decline_code: declineCode,
      message,
      charge: charge.id,
      payment_intent: shown(job, failed),
    },
    { saved: true },
  );
}

function requireAction(job: Job, intent: PaymentIntentRecord): PaymentIntentRecord {
  const record = putIntent(job, {
    ...intent,
    status: "requires_action",
    next_action: {
      type: "use_stripe_sdk",
      use_stripe_sdk: { type: "three_d_secure_redirect", stripe_js: "https://js.stripe.com/3ds" },
    },
  });
  emit(job.world, job.space, { type: "payment_intent.requires_action", record, cause: job.cause });
  return record;
}

function processDebit(job: Job, intent: PaymentIntentRecord, method: Method): PaymentIntentRecord {
  const { world, space, cause } = job;
  const draft: ChargeDraft = { ...chargeDraft(intent, method), status: "pending", captured: true };
  const charge = putCharge(world, space, makeCharge(world, space, draft, method.billing));
  const record = putIntent(job, { ...intent, status: "processing", latest_charge: charge.id });
  emit(world, space, { type: "payment_intent.processing", record, cause });
  emit(world, space, { type: "charge.pending", record: charge, cause });
  return record;
}

/** Marks an intent as paid by a captured charge, and tells of both. */
function succeed(job: Job, intent: PaymentIntentRecord, made: ChargeRecord): PaymentIntentRecord {
  const { world, space, cause } = job;
  const asynchronous = intent.capture_method === "automatic_async";
  const mirrored = mirrorDestination(world, space, made);
  const charge = asynchronous ? putCharge(world, space, mirrored) : bookNow(world, space, mirrored);
  const record = putIntent(job, {
    ...intent,
    status: "succeeded",
    amount_received: charge.amount_captured,
    latest_charge: charge.id,
    last_payment_error: null,
    next_action: null,
  });
  emit(world, space, { type: "charge.succeeded", record: charge, cause });
  emit(world, space, { type: "payment_intent.succeeded", record, cause });
  if (asynchronous) bookLater(world, space, charge.id);
  return record;
}

function authorize(job: Job, intent: PaymentIntentRecord, method: Method): PaymentIntentRecord {
  const { world, space, cause } = job;
  const draft: ChargeDraft = { ...chargeDraft(intent, method), captured: false };
  const charge = putCharge(world, space, makeCharge(world, space, draft, method.billing));
  const record = putIntent(job, {
    ...intent,
    status: "requires_capture",
    amount_capturable: intent.amount,
    latest_charge: charge.id,
    last_payment_error: null,
    next_action: null,
  });
  emit(world, space, { type: "charge.succeeded", record: charge, cause });
  emit(world, space, { type: "payment_intent.amount_capturable_updated", record, cause });
  return record;
}

/**
 * Confirms an intent: it ends paid, authorized, processing or waiting for its customer; a decline
 * throws the 402 after its failed charge and events are made. `passed` skips authentication.
 */
export function confirmIntent(
  job: Job,
  intent: PaymentIntentRecord,
  passed = false,
): PaymentIntentRecord {
  if (!CONFIRMABLE.includes(intent.status)) throw unexpectedState(job, intent, "confirmed");
  if (intent.payment_method === null) {
    throw wrongState(
      "You cannot confirm this PaymentIntent because it's missing a payment method.",
      "payment_intent_unexpected_state",
      { payment_intent: shown(job, intent) },
    );
  }
  const method = methodOf(job, intent);
  const { kind } = method.behaviour;
  if (kind === "declines") decline(job, intent, method);
  if (kind === "requires_action" && !passed) return requireAction(job, intent);
  // A bank transfer waits for the customer to send it.
  if (method.type === "customer_balance") return requireAction(job, intent);
  if (kind === "asynchronous") return processDebit(job, intent, method);
  if (intent.capture_method === "manual") return authorize(job, intent, method);
  const made = makeCharge(job.world, job.space, chargeDraft(intent, method), method.billing);
  const paid = succeed(job, intent, made);
  if (kind === "disputes") {
    const { disputeReason: reason, disputeStatus: status } = method.behaviour;
    createDispute(job, made.id, { reason, status });
  }
  return paid;
}

/** Pays an intent that waits for a bank transfer, once the money is there. */
export function payByTransfer(job: Job, intent: PaymentIntentRecord): PaymentIntentRecord {
  const method = methodOf(job, intent);
  const made = makeCharge(job.world, job.space, chargeDraft(intent, method), method.billing);
  return succeed(job, { ...intent, capture_method: "automatic" }, made);
}

/** Ends an asynchronous payment (bank debit and the like), as the bank does days later. */
export function settleIntent(job: Job, intentId: string, outcome: "succeeded" | "failed"): void {
  const { world, space, cause } = job;
  const intent = space.intents.get(intentId);
  const before = space.charges.get(intent?.latest_charge ?? "");
  if (intent?.status !== "processing" || before?.status !== "pending") {
    throw new RangeError(`${intentId} is not processing`);
  }
  if (outcome === "succeeded") {
    succeed(
      job,
      { ...intent, capture_method: "automatic" },
      { ...before, status: "succeeded", paid: true },
    );
    return;
  }
  const message = "The bank returned the debit.";
  const failed: ChargeRecord = {
    ...before,
    status: "failed",
    captured: false,
    amount_captured: 0n,
    failure_code: "insufficient_funds",
    failure_message: message,
  };
  putCharge(world, space, failed);
  const record = putIntent(job, {
    ...intent,
    status: "requires_payment_method",
    last_payment_error: {
      type: "card_error",
      code: "insufficient_funds",
      message,
      charge: before.id,
    },
  });
  emit(world, space, { type: "charge.failed", record: failed, before, cause });
  emit(world, space, { type: "payment_intent.payment_failed", record, cause });
}
