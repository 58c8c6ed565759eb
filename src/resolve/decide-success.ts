/**
 * What becomes of a row whose payment succeeded at the provider (README.md, what it settles by
 * itself).
 */
import { invariant } from "../core/errors.ts";
import type { Decision } from "./decision.ts";
import type { OpenIntent, OwnCharge, RivalRow, Situation } from "./situation.ts";

/** What the decision about a success rests on, on every rail. */
export type SuccessFacts = Pick<
  Situation,
  "intent" | "payments" | "siblings" | "rivals" | "sharedKeys"
>;

/**
 * Decides about a row with at least one success of its own; `paid` is oldest first. Exactly one
 * that agrees is recorded; everything else is held for a person.
 */
export function decideSuccess(situation: SuccessFacts, paid: readonly OwnCharge[]): Decision {
  return (
    torn(paid) ??
    twice(situation, paid) ??
    conflicting(situation, paid) ??
    differing(situation.intent, keeper(paid)) ??
    record(situation, keeper(paid))
  );
}

/** The charge that the row will name: the oldest that was not given back, else the oldest. */
function keeper(paid: readonly OwnCharge[]): OwnCharge {
  const first = paid.find((charge) => charge.net > 0n) ?? paid[0];
  invariant(first !== undefined, "a success was to be recorded and there is none");
  return first;
}

function torn(paid: readonly OwnCharge[]): Decision | null {
  const charge = paid.find((one) => one.torn);
  if (charge === undefined) return null;
  return {
    kind: "hold",
    code: "key_reuse",
    basis: "marks",
    charges: [charge.chargeId],
    reason: `the marks of ${charge.chargeId} point to different rows`,
  };
}

/** Two successes that were kept: which one the row stands for is for a person to say. */
function twice(situation: SuccessFacts, paid: readonly OwnCharge[]): Decision | null {
  const own = paid.filter((charge) => charge.net > 0n);
  const others = situation.intent.repeatConfirmed ? [] : situation.siblings;
  if (own.length < 2 && (own.length === 0 || others.length === 0)) return null;
  const charges = [...own, ...others]
    .toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
    .map((charge) => charge.chargeId);
  return {
    kind: "hold",
    code: "double_charge",
    basis: doubleBasis(situation, own.length),
    charges,
    reason: `the operation was paid ${String(charges.length)} times: ${charges.join(", ")}`,
  };
}

function doubleBasis(situation: SuccessFacts, own: number): string {
  if (situation.sharedKeys.length > 0) return "key";
  if (own > 1) return "intent";
  return situation.intent.operationId?.startsWith("pid:") === true ? "payment_id" : "reference";
}

function conflicting(situation: SuccessFacts, paid: readonly OwnCharge[]): Decision | null {
  const rival = situation.rivals[0];
  if (rival === undefined) return null;
  return {
    kind: "hold",
    code: "fingerprint_conflict",
    basis: rival.mark,
    charges: paid.map((charge) => charge.chargeId),
    reason:
      `${rival.intentId} has the same ${rival.mark === "key" ? "key" : "payment id"} for ` +
      `${money(rival)} while this row says ${money(situation.intent)}`,
  };
}

function differing(intent: OpenIntent, charge: OwnCharge): Decision | null {
  const basis = mismatch(intent, charge);
  if (basis === null) return null;
  return {
    kind: "hold",
    code: "amount_mismatch",
    basis,
    charges: [charge.chargeId],
    reason:
      basis === "asset"
        ? `the row names the token ${String(intent.asset)}, ` +
          `${charge.chargeId} moved ${String(charge.asset)}`
        : basis === "payee"
          ? `the row names the payee ${String(intent.payee)}, ` +
            `${charge.chargeId} paid ${String(charge.payee)}`
          : `the row says ${money(intent)}, ${charge.chargeId} took ` +
            money({ amount: charge.amountCaptured, currency: charge.currency }),
  };
}

const ACCOUNT_OR_ADDRESS = /^(acct_|0x)/i;

function mismatch(
  intent: OpenIntent,
  charge: OwnCharge,
): "currency" | "asset" | "amount" | "payee" | null {
  // Tokens are their contracts, whatever they are called (case B40).
  const assets = [intent.asset, charge.asset];
  if (!assets.includes(null) && assets[0] !== assets[1]) return "asset";
  if (intent.currency !== charge.currency) return "currency";
  // A capture below what was authorised is the merchant's choice and only a remark.
  const partial = charge.amount === intent.amount && charge.amountCaptured < intent.amount;
  if (charge.amountCaptured !== intent.amount && !partial) return "amount";
  if (intent.payee === null || charge.payee === null) return null;
  // A name of the team's own says nothing about the account or address that was paid.
  if (!ACCOUNT_OR_ADDRESS.test(intent.payee)) return null;
  return intent.payee.toLowerCase() === charge.payee.toLowerCase() ? null : "payee";
}

function record(situation: SuccessFacts, charge: OwnCharge): Decision {
  const notes: string[] = [];
  if (charge.amountCaptured < charge.amount) {
    notes.push(`captured ${String(charge.amountCaptured)} of ${String(charge.amount)}`);
  }
  if (charge.net === 0n) {
    notes.push("it was paid and has gone back since: nothing of it is left");
  } else if (charge.net < charge.amountCaptured) {
    notes.push(`${String(charge.amountCaptured - charge.net)} of it have gone back since`);
  }
  const others = situation.payments.filter(
    (payment) =>
      payment.id !== charge.paymentIntent && !["succeeded", "canceled"].includes(payment.status),
  );
  for (const payment of others) {
    notes.push(`${payment.id} of the same row is still ${payment.status}: cancel it at Stripe`);
  }
  return {
    kind: "record",
    charge,
    basis: charge.basis,
    notes,
    reason: [`${charge.chargeId} succeeded and agrees with the row`, ...notes].join("; "),
  };
}

function money(value: Pick<RivalRow, "amount" | "currency">): string {
  return `${String(value.amount)} ${value.currency.toUpperCase()}`;
}
