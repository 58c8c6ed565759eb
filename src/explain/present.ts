/** Rows of the mirror in the words of `explain --json`. */
import type { StoredResolution } from "../store/resolutions.ts";
import type { SourceRow } from "../store/sources.ts";
import type {
  ExplainedCharge,
  ExplainedCoverage,
  ExplainedEvent,
  ExplainedIntent,
  ExplainedPayment,
  ExplainedResolution,
  ExplainedReturn,
} from "./explained.ts";
import type {
  ChargeRow,
  EventRow,
  IntentRecord,
  MoneyBackRow,
  PaymentRow,
} from "./read-operation.ts";

// The newest ranges say what is read now; older ones are history, and `coverage_list` has all.
const RANGES_SHOWN_MAX = 10;
// A ladder that has ended has its next look beyond every real time.
const NEVER = new Date("9999-01-01T00:00:00Z");

function isoOrNull(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}

/** A row of the team's table. */
export function presentIntent(row: IntentRecord): ExplainedIntent {
  return {
    id: row.intent_id,
    account: row.account_id,
    scope: row.scope,
    rail: row.rail,
    kind: row.kind,
    operation: row.operation_id,
    amount: row.amount,
    currency: row.currency,
    idempotencyKey: row.idempotency_key,
    state: row.state,
    rawState: row.raw_state,
    chargeId: row.charge_id,
    responseKind: row.response_kind,
    fingerprint: row.fingerprint,
    reference: row.reference,
    paymentId: row.payment_id,
    customer: row.customer,
    payer: row.payer,
    payee: row.payee,
    asset: row.asset,
    nonce: row.nonce,
    validBefore: isoOrNull(row.valid_before),
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    vanishedAt: isoOrNull(row.vanished_at),
    ladder:
      row.rung === null || row.next_at === null
        ? null
        : {
            looks: row.rung,
            nextAt: row.next_at >= NEVER ? null : row.next_at.toISOString(),
            endedAt: isoOrNull(row.ended_at),
            missing: row.missing,
          },
  };
}

/** A charge. */
export function presentCharge(row: ChargeRow): ExplainedCharge {
  return {
    id: row.charge_id,
    scope: row.scope,
    rail: row.rail,
    paymentIntent: row.rail === "evm" ? null : row.payment_intent,
    transaction: row.rail === "evm" ? row.payment_intent : null,
    status: row.status,
    succeeded: row.succeeded,
    amount: row.amount,
    amountCaptured: row.amount_captured,
    amountReturned: row.amount_returned,
    net: row.net,
    currency: row.currency,
    captured: row.captured,
    disputed: row.disputed,
    mirrored: row.mirrored,
    payer: row.payer,
    payee: row.payee,
    asset: row.asset,
    nonce: row.nonce,
    reference: row.reference,
    owned: row.owned,
    operation: row.operation_id,
    intent: row.intent_id,
    basis: row.basis,
    conflict: row.conflict,
    createdAt: row.created_at.toISOString(),
  };
}

/** A payment intent. */
export function presentPayment(row: PaymentRow): ExplainedPayment {
  return {
    id: row.id,
    scope: row.scope,
    status: row.status,
    amount: row.amount,
    currency: row.currency,
    latestCharge: row.latest_charge,
    failureCode: row.failure_code,
    cancellationReason: row.cancellation_reason,
    createdAt: row.created_at.toISOString(),
    missingSince: isoOrNull(row.missing_since),
  };
}

/** A refund or a dispute. */
export function presentReturn(row: MoneyBackRow): ExplainedReturn {
  return {
    id: row.id,
    scope: row.scope,
    charge: row.charge_id,
    paymentIntent: row.payment_intent,
    amount: row.amount,
    currency: row.currency,
    status: row.status,
    reason: row.reason,
    createdAt: row.created_at.toISOString(),
  };
}

/** An event. */
export function presentEvent(row: EventRow): ExplainedEvent {
  return {
    id: row.event_id,
    type: row.type,
    scope: row.scope,
    object: row.object_id,
    idempotencyKey: row.idempotency_key,
    via: row.via,
    status: row.status,
    deliveries: row.deliveries,
    createdAt: row.created_at.toISOString(),
    receivedAt: row.received_at.toISOString(),
  };
}

/** A resolution. */
export function presentResolution(row: StoredResolution): ExplainedResolution {
  return {
    id: String(row.resolutionId),
    intent: row.intentId,
    decision: row.decision,
    reason: row.reason,
    fromState: row.fromState,
    toState: row.toState,
    charge: row.chargeId,
    outcome: row.outcome,
    proof: row.proof,
    contract: row.contract,
    decidedAt: row.decidedAt.toISOString(),
  };
}

/** What of a source is proven to be read, and whether that holds the row's own time. */
export function presentCoverage(
  source: SourceRow,
  intent: Pick<IntentRecord, "created_at" | "updated_at"> | null,
): ExplainedCoverage {
  return {
    source: source.source,
    scope: source.scope,
    ranges: source.covered
      .slice(-RANGES_SHOWN_MAX)
      .map(({ from, to }) => ({ from: from.toISOString(), to: to.toISOString() })),
    coversIntent:
      intent === null
        ? null
        : source.covered.some(
            ({ from, to }) => from <= intent.created_at && intent.updated_at < to,
          ),
    lastOkAt: isoOrNull(source.lastOkAt),
    failingSince: isoOrNull(source.failingSince),
    lastError: source.lastError,
  };
}
