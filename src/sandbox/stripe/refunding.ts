import { putCharge } from "./charging.ts";
import type { Job } from "./job.ts";
import { invalidParam, wrongState } from "./errors.ts";
import { emit } from "./events.ts";
import { bookRefund } from "./ledger.ts";
import type { ChargeRecord, Metadata, RefundRecord } from "./records.ts";

/** What a refund is asked for with; no amount means all that is left. */
export interface RefundOrder {
  readonly amount: bigint | undefined;
  readonly reason: string | null;
  readonly metadata: Metadata;
}

function refundable(charge: ChargeRecord, order: RefundOrder): bigint {
  if (charge.refunded) {
    throw wrongState(`Charge ${charge.id} has already been refunded.`, "charge_already_refunded");
  }
  if (!charge.paid || !charge.captured) {
    throw wrongState(`Charge ${charge.id} is not captured.`, "charge_not_refundable");
  }
  const rest = charge.amount - charge.amount_refunded;
  const amount = order.amount ?? rest;
  if (amount <= 0n) {
    throw invalidParam("Invalid positive integer", "amount", "parameter_invalid_integer");
  }
  if (amount > rest) {
    throw wrongState(
      `Refund amount (${String(amount)}) is greater than unrefunded amount on charge ` +
        `(${String(rest)}).`,
      "amount_too_large",
      { param: "amount" },
    );
  }
  return amount;
}

/** Refunds a charge, fully or in part. Its running total rises at once, come what may. */
export function createRefund(job: Job, before: ChargeRecord, order: RefundOrder): RefundRecord {
  const { world, space, cause } = job;
  const disputes = space.disputes.records("charge", before.id);
  if (disputes.some((dispute) => !dispute.is_charge_refundable)) {
    throw wrongState(`Charge ${before.id} has been charged back.`, "charge_disputed");
  }
  const amount = refundable(before, order);
  const pending = before.refundOutcome === "pending";
  const draft: RefundRecord = {
    id: world.ids.next(before.id.startsWith("py_") ? "pyr" : "re"),
    object: "refund",
    created: world.clock.seconds(),
    livemode: space.livemode,
    metadata: order.metadata,
    amount,
    balance_transaction: null,
    charge: before.id,
    currency: before.currency,
    failure_balance_transaction: null,
    failure_reason: null,
    payment_intent: before.payment_intent,
    reason: order.reason,
    status: pending ? "pending" : "succeeded",
  };
  const entry = bookRefund(world, space, draft, false);
  const refund = putRefund(job, { ...draft, balance_transaction: entry.id });
  const total = before.amount_refunded + amount;
  const charge = putCharge(world, space, {
    ...before,
    amount_refunded: total,
    refunded: total === before.amount,
  });
  emit(world, space, { type: "refund.created", record: refund, cause });
  emit(world, space, { type: "charge.refunded", record: charge, before, cause });
  if (before.refundOutcome === "fails_later") failLater(job, refund.id);
  return refund;
}

/** Stores a refund. */
export function putRefund(job: Job, refund: RefundRecord): RefundRecord {
  return job.space.refunds.put(refund, job.world.clock.now());
}

function failLater(job: Job, refundId: string): void {
  const quiet: Job = { ...job, cause: { requestId: null, idempotencyKey: null } };
  job.world.tracker.later(job.world.settings.asyncCaptureMs, () => {
    failRefund(quiet, refundId, "expired_or_canceled_card");
  });
}

function currentRefund(job: Job, refundId: string): RefundRecord {
  const refund = job.space.refunds.get(refundId);
  if (refund === undefined) throw new RangeError(`no refund ${refundId}`);
  return refund;
}

function giveBack(job: Job, refund: RefundRecord): void {
  const charge = job.space.charges.get(refund.charge);
  if (charge === undefined) return;
  const total = charge.amount_refunded - refund.amount;
  putCharge(job.world, job.space, { ...charge, amount_refunded: total, refunded: false });
}

function announceUpdate(job: Job, record: RefundRecord, before: RefundRecord): void {
  const { world, space, cause } = job;
  emit(world, space, { type: "refund.updated", record, before, cause });
  emit(world, space, { type: "charge.refund.updated", record, before, cause });
}

/** A refund fails, also after it had succeeded: the money returns to the balance. */
export function failRefund(job: Job, refundId: string, reason: string): RefundRecord {
  const before = currentRefund(job, refundId);
  if (before.status === "failed" || before.status === "canceled") return before;
  const entry = bookRefund(job.world, job.space, before, true);
  const record = putRefund(job, {
    ...before,
    status: "failed",
    failure_reason: reason,
    failure_balance_transaction: entry.id,
  });
  giveBack(job, record);
  emit(job.world, job.space, { type: "refund.failed", record, before, cause: job.cause });
  announceUpdate(job, record, before);
  return record;
}

/** A pending refund arrives. */
export function settleRefund(job: Job, refundId: string): RefundRecord {
  const before = currentRefund(job, refundId);
  const record = putRefund(job, { ...before, status: "succeeded" });
  announceUpdate(job, record, before);
  return record;
}

/** Cancels a refund that has not gone out yet. */
export function cancelRefund(job: Job, refundId: string): RefundRecord {
  const before = currentRefund(job, refundId);
  if (before.status !== "requires_action" && before.status !== "pending") {
    throw wrongState(`Refund ${refundId} can no longer be canceled.`, "refund_not_cancelable");
  }
  const record = putRefund(job, { ...before, status: "canceled" });
  giveBack(job, record);
  announceUpdate(job, record, before);
  return record;
}

/** Changes a refund's metadata. */
export function updateRefund(job: Job, refundId: string, metadata: Metadata): RefundRecord {
  const before = currentRefund(job, refundId);
  const record = putRefund(job, { ...before, metadata });
  announceUpdate(job, record, before);
  return record;
}
