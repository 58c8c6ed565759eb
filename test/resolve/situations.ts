import { addMs } from "../../src/core/clock.ts";
import type { ProofRules } from "../../src/resolve/absence.ts";
import { attemptRange } from "../../src/resolve/absence.ts";
import type {
  AbsenceFacts,
  OpenIntent,
  OwnCharge,
  OwnPayment,
  SiblingCharge,
  Situation,
} from "../../src/resolve/situation.ts";

/** The instant of every decision in these tests. */
export const NOW = new Date("2026-06-01T12:00:00Z");
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

export const RULES: ProofRules = {
  attemptWindowMs: 6 * MINUTE,
  safetyLagMs: MINUTE,
  clockSlackMs: 5 * MINUTE,
  retryHorizonMs: 24 * HOUR,
  metadataKey: "intent_id",
};

/** A time before {@link NOW}. */
export function ago(ms: number): Date {
  return addMs(NOW, -ms);
}

export function intent(fields: Partial<OpenIntent> = {}): OpenIntent {
  return {
    intentId: "in_1",
    accountId: "A",
    scope: "platform/test",
    operationId: "intent:in_1",
    amount: 1000n,
    currency: "usd",
    idempotencyKey: "k1",
    state: "reconciling",
    chargeId: null,
    fingerprint: null,
    reference: null,
    payee: null,
    asset: null,
    repeatConfirmed: false,
    createdAt: ago(2 * HOUR),
    updatedAt: ago(2 * HOUR),
    touchKnown: true,
    ...fields,
  };
}

export function payment(fields: Partial<OwnPayment> = {}): OwnPayment {
  return {
    id: "pi_1",
    status: "succeeded",
    amount: 1000n,
    currency: "usd",
    failureCode: null,
    cancellationReason: null,
    basis: "metadata",
    createdAt: ago(2 * HOUR),
    versionAt: ago(2 * HOUR),
    seenAt: ago(MINUTE),
    missingSince: null,
    ...fields,
  };
}

export function charge(fields: Partial<OwnCharge> = {}): OwnCharge {
  const status = fields.status ?? "succeeded";
  const paid = status === "succeeded" && (fields.captured ?? true) && fields.mirrored !== true;
  return {
    chargeId: "ch_1",
    paymentIntent: "pi_1",
    status,
    succeeded: paid,
    captured: status === "succeeded",
    mirrored: false,
    amount: 1000n,
    amountCaptured: paid ? (fields.amount ?? 1000n) : 0n,
    net: paid ? (fields.amountCaptured ?? fields.amount ?? 1000n) : 0n,
    currency: "usd",
    payee: null,
    asset: null,
    failureCode: status === "failed" ? "card_declined" : null,
    basis: "metadata",
    torn: false,
    createdAt: ago(2 * HOUR),
    ...fields,
  };
}

export function sibling(fields: Partial<SiblingCharge> = {}): SiblingCharge {
  return {
    chargeId: "ch_9",
    intentId: "in_9",
    net: 1000n,
    currency: "usd",
    createdAt: ago(HOUR),
    ...fields,
  };
}

/** Facts that prove an absence: complete lists, nothing unmarked, a look just now. */
export function absence(fields: Partial<AbsenceFacts> = {}): AbsenceFacts {
  return {
    gaps: [],
    marked: [],
    owned: 0,
    withMetadata: 0,
    withKey: 0,
    unmarked: [],
    unmarkedTotal: 0,
    look: { kind: "lists", range: attemptRange(intent(), RULES), at: ago(1_000) },
    ...fields,
  };
}

export function situation(fields: Partial<Situation> = {}): Situation {
  return {
    intent: intent(),
    payments: [],
    charges: [],
    siblings: [],
    rivals: [],
    sharedKeys: [],
    absence: absence(),
    ...fields,
  };
}
