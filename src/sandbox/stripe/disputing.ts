import { putCharge } from "./charging.ts";
import type { Job } from "./job.ts";
import { emit } from "./events.ts";
import { book } from "./ledger.ts";
import type { DisputeRecord, Metadata, Wire } from "./records.ts";

/** The fee of a lost or open chargeback, in minor units. */
const DISPUTE_FEE = 1_500n;

/** What a dispute is opened with; the rest has the values of a plain chargeback. */
export interface DisputeOrder {
  readonly id?: string | undefined;
  readonly amount?: bigint | undefined;
  readonly reason?: string | undefined;
  readonly status?: string | undefined;
  readonly isChargeRefundable?: boolean | undefined;
  readonly metadata?: Metadata | undefined;
  /** Unix seconds. */
  readonly created?: number | undefined;
  readonly extra?: Wire | undefined;
}

function putDispute(job: Job, dispute: DisputeRecord): DisputeRecord {
  return job.space.disputes.put(dispute, job.world.clock.now());
}

function moveFunds(job: Job, dispute: DisputeRecord, back: boolean): DisputeRecord {
  const entry = book(job.world, job.space, {
    amount: back ? dispute.amount : -dispute.amount,
    fee: back ? 0n : DISPUTE_FEE,
    currency: dispute.currency,
    source: dispute.id,
    type: "adjustment",
    category: back ? "dispute_reversal" : "dispute",
    created: job.world.clock.seconds(),
  });
  return {
    ...dispute,
    balance_transactions: [...dispute.balance_transactions, entry.id],
  };
}

/** Opens a dispute on a charge. An inquiry (`warning_*`) takes no funds and allows refunds. */
export function createDispute(job: Job, chargeId: string, order: DisputeOrder): DisputeRecord {
  const { world, space, cause } = job;
  const charge = space.charges.get(chargeId);
  if (charge === undefined) throw new RangeError(`no charge ${chargeId}`);
  const status = order.status ?? "needs_response";
  const inquiry = status.startsWith("warning_");
  const draft: DisputeRecord = {
    id: order.id ?? world.ids.next("dp"),
    object: "dispute",
    created: order.created ?? world.clock.seconds(),
    livemode: space.livemode,
    metadata: order.metadata ?? {},
    amount: order.amount ?? charge.amount,
    balance_transactions: [],
    charge: chargeId,
    currency: charge.currency,
    evidence: {},
    evidenceSubmitted: false,
    is_charge_refundable: order.isChargeRefundable ?? inquiry,
    payment_intent: charge.payment_intent,
    reason: order.reason ?? "fraudulent",
    status,
    ...(order.extra === undefined ? {} : { extra: order.extra }),
  };
  const record = putDispute(job, inquiry ? draft : moveFunds(job, draft, false));
  putCharge(world, space, { ...charge, disputed: true, dispute: record.id });
  emit(world, space, { type: "charge.dispute.created", record, cause });
  if (!inquiry) emit(world, space, { type: "charge.dispute.funds_withdrawn", record, cause });
  return record;
}

/** Ends a dispute. Winning returns the funds; an inquiry closes without any. */
export function closeDispute(job: Job, dispute: DisputeRecord, won: boolean): DisputeRecord {
  const { world, space, cause } = job;
  const inquiry = dispute.status.startsWith("warning_");
  const status = inquiry ? "warning_closed" : won ? "won" : "lost";
  const funded = won && !inquiry ? moveFunds(job, dispute, true) : dispute;
  const record = putDispute(job, { ...funded, status });
  emit(world, space, { type: "charge.dispute.closed", record, before: dispute, cause });
  if (won && !inquiry) {
    emit(world, space, { type: "charge.dispute.funds_reinstated", record, cause });
  }
  return record;
}

/**
 * Takes evidence. Submitting sends the dispute to review; Stripe's test texts `winning_evidence`
 * and `losing_evidence` end it at once.
 */
export function updateDispute(
  job: Job,
  dispute: DisputeRecord,
  change: { readonly metadata: Metadata; readonly evidence: Wire; readonly submit: boolean },
): DisputeRecord {
  const review = dispute.status.startsWith("warning_") ? "warning_under_review" : "under_review";
  const record = putDispute(job, {
    ...dispute,
    metadata: change.metadata,
    evidence: { ...dispute.evidence, ...change.evidence },
    evidenceSubmitted: dispute.evidenceSubmitted || change.submit,
    status: change.submit ? review : dispute.status,
  });
  const { world, space, cause } = job;
  emit(world, space, { type: "charge.dispute.updated", record, before: dispute, cause });
  const verdict = change.evidence["uncategorized_text"];
  if (verdict === "winning_evidence") return closeDispute(job, record, true);
  if (verdict === "losing_evidence") return closeDispute(job, record, false);
  return record;
}
