import { bookNow, putCharge } from "./charging.ts";
import { invalidParam } from "./errors.ts";
import { emit } from "./events.ts";
import { putIntent, unexpectedState } from "./job.ts";
import type { Job } from "./job.ts";
import type { ChargeRecord, PaymentIntentRecord, RefundRecord } from "./records.ts";

/** Statuses from which an intent can still be canceled. */
const CANCELABLE = [
  "requires_payment_method",
  "requires_confirmation",
  "requires_action",
  "requires_capture",
  "processing",
];

/**
 * The part of an authorization that is let go shows up as refunded, with a refund object, although
 * nobody refunded it (seen with partial captures and canceled authorizations).
 */
function releaseRest(job: Job, charge: ChargeRecord, rest: bigint): ChargeRecord {
  const refund: RefundRecord = {
    id: job.world.ids.next("re"),
    object: "refund",
    created: job.world.clock.seconds(),
    livemode: job.space.livemode,
    metadata: {},
    amount: rest,
    balance_transaction: null,
    charge: charge.id,
    currency: charge.currency,
    failure_balance_transaction: null,
    failure_reason: null,
    payment_intent: charge.payment_intent,
    reason: null,
    status: "succeeded",
  };
  job.space.refunds.put(refund, job.world.clock.now());
  return { ...charge, amount_refunded: charge.amount_refunded + rest };
}

/** Captures an authorized intent in full, or `amount` of it and lets the rest go. */
export function captureIntent(
  job: Job,
  intent: PaymentIntentRecord,
  amount: bigint | undefined,
): PaymentIntentRecord {
  const { world, space, cause } = job;
  const before = space.charges.get(intent.latest_charge ?? "");
  if (intent.status !== "requires_capture" || before === undefined) {
    throw unexpectedState(job, intent, "captured");
  }
  const captured = amount ?? intent.amount_capturable;
  if (captured <= 0n || captured > intent.amount_capturable) {
    throw invalidParam(
      "The amount to capture must be positive and at most the amount that can be captured " +
        `(${String(intent.amount_capturable)}).`,
      "amount_to_capture",
    );
  }
  const rest = before.amount - captured;
  const taken: ChargeRecord = { ...before, captured: true, amount_captured: captured };
  const charge = bookNow(world, space, rest > 0n ? releaseRest(job, taken, rest) : taken);
  const record = putIntent(job, {
    ...intent,
    status: "succeeded",
    amount_capturable: 0n,
    amount_received: captured,
  });
  emit(world, space, { type: "charge.captured", record: charge, before, cause });
  if (rest > 0n) emit(world, space, { type: "charge.refunded", record: charge, before, cause });
  emit(world, space, { type: "payment_intent.succeeded", record, before: intent, cause });
  return record;
}

/** Cancels an intent; an authorization is let go, a pending debit fails. */
export function cancelIntent(
  job: Job,
  intent: PaymentIntentRecord,
  reason: string | null,
): PaymentIntentRecord {
  const { world, space, cause } = job;
  if (!CANCELABLE.includes(intent.status)) throw unexpectedState(job, intent, "canceled");
  const before = space.charges.get(intent.latest_charge ?? "");
  if (intent.status === "requires_capture" && before !== undefined) {
    const charge = putCharge(world, space, {
      ...releaseRest(job, before, before.amount),
      refunded: true,
    });
    emit(world, space, { type: "charge.refunded", record: charge, before, cause });
  }
  if (intent.status === "processing" && before !== undefined) {
    const charge = putCharge(world, space, { ...before, status: "failed", captured: false });
    emit(world, space, { type: "charge.failed", record: charge, before, cause });
  }
  const record = putIntent(job, {
    ...intent,
    status: "canceled",
    amount_capturable: 0n,
    canceled_at: world.clock.seconds(),
    cancellation_reason: reason,
    next_action: null,
  });
  emit(world, space, { type: "payment_intent.canceled", record, cause });
  return record;
}
