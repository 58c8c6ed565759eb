/**
 * A decision as it is stored: its words and its proof in JSON, amounts as strings, times as ISO.
 */
import { unreachable } from "../core/errors.ts";
import type { AbsenceProof } from "./absence.ts";
import type { Decision } from "./decision.ts";
import type { OwnCharge, Situation } from "./situation.ts";

// The objects of one row; more of them is a finding of its own and named there.
const OBJECTS_MAX = 10;

/** The word that a decision is stored under (tallyd.resolution.decision). */
export function decisionWord(decision: Decision): string {
  switch (decision.kind) {
    case "record":
      return "recorded";
    case "fail_terminal":
      return "failed_terminal";
    case "fail_retryable":
      return "failed_retryable";
    case "wait":
    case "hold":
    case "unproven":
      return decision.kind;
    default:
      return unreachable(decision);
  }
}

/** The reason, with what to do and what is missing. */
export function fullReason(decision: Decision): string {
  switch (decision.kind) {
    case "fail_terminal":
    case "fail_retryable":
      return `${decision.reason}. ${decision.advice}`;
    case "unproven":
      return [decision.reason, ...decision.missing.map((item) => item.detail)].join("; ");
    case "record":
    case "wait":
    case "hold":
      return decision.reason;
    default:
      return unreachable(decision);
  }
}

/** The facts that the decision rests on. */
export function proofOf(situation: Situation, decision: Decision): Record<string, unknown> {
  return { ...decisionProof(decision), ...objects(situation) };
}

/** What the decision itself says, on every rail. */
export function decisionProof(decision: Decision): Record<string, unknown> {
  switch (decision.kind) {
    case "record":
      return {
        kind: "success",
        basis: decision.basis,
        charge: chargeJson(decision.charge),
        notes: decision.notes,
      };
    case "fail_terminal":
      return decision.absence === null
        ? { kind: decision.why, objects: decision.objects, advice: decision.advice }
        : { ...absenceJson(decision.absence), advice: decision.advice };
    case "fail_retryable":
      return { ...absenceJson(decision.absence), advice: decision.advice };
    case "wait":
      return { kind: "not_final", on: decision.on, objects: decision.objects };
    case "hold":
      return {
        kind: "held",
        code: decision.code,
        basis: decision.basis,
        charges: decision.charges,
      };
    case "unproven":
      return { kind: "unproven", missing: decision.missing };
    default:
      return unreachable(decision);
  }
}

function absenceJson(proof: AbsenceProof): Record<string, unknown> {
  const { range, sources, marks, look } = proof;
  return {
    kind: "absence",
    range: { from: range.from.toISOString(), to: range.to.toISOString() },
    sources,
    objects: proof.objects,
    marks,
    // "No mark was needed" is a statement of its own, so that an empty list is no riddle.
    reliedOn: marks.length === 0 ? "no payment was made in that time" : marks.join(", "),
    look: { kind: look.kind, at: look.at.toISOString() },
  };
}

function chargeJson(charge: OwnCharge): Record<string, unknown> {
  return {
    id: charge.chargeId,
    paymentIntent: charge.paymentIntent,
    amount: String(charge.amount),
    amountCaptured: String(charge.amountCaptured),
    net: String(charge.net),
    currency: charge.currency,
    createdAt: charge.createdAt.toISOString(),
  };
}

function objects(situation: Situation): Record<string, unknown> {
  return {
    ownPayments: situation.payments
      .slice(0, OBJECTS_MAX)
      .map((payment) => ({ id: payment.id, status: payment.status, basis: payment.basis })),
    ownCharges: situation.charges
      .slice(0, OBJECTS_MAX)
      .map((charge) => ({ id: charge.chargeId, status: charge.status, basis: charge.basis })),
  };
}
