/**
 * The decision about one ambiguous intent, from its situation alone (README.md, what it settles by
 * itself,
 * "Settled questions"). Success beats every failure, unknown is never turned into failed, and a
 * final state is never written.
 */
import { addMs } from "../core/clock.ts";
import { unreachable } from "../core/errors.ts";
import { missingCoverage, proveAbsence, provableAt } from "./absence.ts";
import type { ProofRules } from "./absence.ts";
import { decideSuccess } from "./decide-success.ts";
import type { Decision } from "./decision.ts";
import type { OwnCharge, OwnPayment, Situation } from "./situation.ts";

/** Statuses that can still lead to a success without a new attempt of the buyer. */
const OPEN_STATUSES: ReadonlySet<string> = new Set([
  "processing",
  "requires_action",
  "requires_confirmation",
  "requires_capture",
]);

/** Decides; pure. `now` is the time of the re-read. */
export function decide(situation: Situation, rules: ProofRules, now: Date): Decision {
  const { state } = situation.intent;
  switch (state) {
    case "recorded":
    case "failed_terminal":
      return {
        kind: "hold",
        code: "state_drift",
        basis: null,
        charges: paid(situation).map((charge) => charge.chargeId),
        reason: `${state} is never written: somebody may have acted on it`,
      };
    case "key_minted":
    case "failed_retryable":
      if (paid(situation).length > 0) return decideSuccess(situation, paid(situation));
      return {
        kind: "wait",
        on: "holder",
        until: null,
        objects: [],
        reason: `${state}: only a success of its own is written, and there is none`,
      };
    case "in_flight":
    case "reconciling":
      if (paid(situation).length > 0) return decideSuccess(situation, paid(situation));
      return decideWithoutSuccess(situation, rules, now);
    default:
      return unreachable(state);
  }
}

/** The row's own successful charges, oldest first. */
function paid(situation: Situation): readonly OwnCharge[] {
  return situation.charges
    .filter((charge) => charge.succeeded)
    .toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
}

function decideWithoutSuccess(situation: Situation, rules: ProofRules, now: Date): Decision {
  const open = stillOpen(situation) ?? unreadable(situation);
  if (open !== null) return open;
  if (situation.payments.length > 0 || situation.charges.length > 0) {
    return finalFailure(situation, rules, now);
  }
  if (situation.intent.state === "in_flight") {
    return {
      kind: "wait",
      on: "holder",
      until: null,
      objects: [],
      reason:
        "no provider object was found, and an absence never settles a row in flight: " +
        "somebody may still hold it",
    };
  }
  return absent(situation, rules, now);
}

/** An object that is not final: the ladder goes on. */
function stillOpen(situation: Situation): Decision | null {
  const wait = (reason: string, objects: readonly string[]): Decision => ({
    kind: "wait",
    on: "provider",
    until: null,
    objects,
    reason,
  });
  for (const charge of situation.charges) {
    if (charge.status === "pending") {
      return wait(`${charge.chargeId} is pending`, [charge.chargeId]);
    }
    if (heldWithoutPayment(charge, situation.payments)) {
      return wait(`${charge.chargeId} is authorised and not captured`, [charge.chargeId]);
    }
  }
  for (const payment of situation.payments) {
    if (payment.missingSince !== null) continue;
    if (OPEN_STATUSES.has(payment.status)) {
      return wait(`${payment.id} is ${payment.status}`, [payment.id]);
    }
    // Right after a success the charge may not be there yet (case B23).
    if (payment.status === "succeeded") {
      return wait(`${payment.id} succeeded and its charge is not known yet`, [payment.id]);
    }
    if (payment.status === "requires_payment_method" && !attempted(payment, situation)) {
      return wait(`${payment.id} was made and nobody has tried to pay it yet`, [payment.id]);
    }
  }
  return null;
}

function heldWithoutPayment(charge: OwnCharge, payments: readonly OwnPayment[]): boolean {
  const held = charge.status === "succeeded" && !charge.captured;
  return held && !payments.some((payment) => payment.id === charge.paymentIntent);
}

function attempted(payment: OwnPayment, situation: Situation): boolean {
  return payment.failureCode !== null || attemptsOf(payment, situation).length > 0;
}

function attemptsOf(payment: OwnPayment, situation: Situation): readonly OwnCharge[] {
  return situation.charges.filter((charge) => charge.paymentIntent === payment.id);
}

/** Objects that say nothing this version understands: never a guess. */
function unreadable(situation: Situation): Decision | null {
  const known = new Set(["canceled", "requires_payment_method"]);
  const odd = situation.payments.find((payment) => !known.has(payment.status));
  const denied = situation.payments.find((payment) => payment.missingSince !== null);
  const mirrored = situation.charges.find((charge) => charge.mirrored);
  if (denied !== undefined) {
    return unproven("id", denied.id, `${denied.id} was known and Stripe denies it now`);
  }
  if (odd !== undefined) {
    return unproven("status", odd.id, `${odd.id} has the status ${odd.status}, which is unknown`);
  }
  if (mirrored !== undefined) {
    return unproven(
      "owner",
      mirrored.chargeId,
      `${mirrored.chargeId} is the connected account's copy of a platform charge: ` +
        "that charge's row decides",
    );
  }
  return null;
}

function unproven(what: "id" | "status" | "owner", id: string, detail: string): Decision {
  return { kind: "unproven", reason: detail, missing: [{ what, detail, ids: [id] }], until: null };
}

/** Every object of the row failed or was canceled; another one must not exist unseen. */
function finalFailure(situation: Situation, rules: ProofRules, now: Date): Decision {
  const settledAt = addMs(lastAttempt(situation), rules.attemptWindowMs);
  const declined = situation.payments.filter((payment) => payment.status !== "canceled");
  const canceled = situation.payments.length > 0 && declined.length === 0;
  const objects = [
    ...situation.payments.map((payment) => payment.id),
    ...situation.charges.map((charge) => charge.chargeId),
  ];
  if (!canceled && now < settledAt) {
    return {
      kind: "wait",
      on: "provider",
      until: settledAt,
      objects,
      reason: `the last attempt failed, and another may follow until ${settledAt.toISOString()}`,
    };
  }
  const missing = missingCoverage(situation, rules, now);
  if (missing.length > 0) {
    return {
      kind: "unproven",
      reason: "what is known of it failed, but a second payment of the row could exist unseen",
      missing,
      until: missing.every((item) => item.what === "time")
        ? provableAt(situation.intent, rules)
        : null,
    };
  }
  if (canceled) return canceledFor(situation.payments, objects);
  return declinedFor(situation, declined, objects);
}

function lastAttempt(situation: Situation): Date {
  const times = [situation.intent.updatedAt, ...situation.charges.map((c) => c.createdAt)];
  return new Date(Math.max(...times.map((time) => time.getTime())));
}

function canceledFor(payments: readonly OwnPayment[], objects: readonly string[]): Decision {
  const why = payments.map((payment) => payment.cancellationReason).find((it) => it !== null);
  const ids = payments.map((payment) => payment.id).join(", ");
  return {
    kind: "fail_terminal",
    why: "canceled",
    reason: `${ids} ${payments.length === 1 ? "was" : "were"} canceled at Stripe` + because(why),
    advice: "Nothing was paid. Mint a new intent if the purchase is still wanted.",
    objects,
    absence: null,
  };
}

function declinedFor(
  situation: Situation,
  open: readonly OwnPayment[],
  objects: readonly string[],
): Decision {
  const failures = situation.charges.toSorted(
    (a, b) => b.createdAt.getTime() - a.createdAt.getTime(),
  );
  const code =
    failures.map((charge) => charge.failureCode).find((it) => it !== null) ??
    open.map((payment) => payment.failureCode).find((it) => it !== null);
  const ids = open.map((payment) => payment.id).join(", ");
  return {
    kind: "fail_terminal",
    why: "declined",
    reason: `every attempt was declined${because(code)}`,
    // A decline leaves the payment intent open: the same one can still succeed later (case B07).
    advice:
      ids === ""
        ? "Nothing was paid. Mint a new intent if the purchase is still wanted."
        : `Nothing was paid, but ${ids} is still open at Stripe and could be paid later: ` +
          "cancel it there before a new intent is minted.",
    objects,
    absence: null,
  };
}

function because(code: string | null | undefined): string {
  return code === null || code === undefined ? "" : ` (${code})`;
}

/** Nothing of the row is known: proven absent, or not proven. */
function absent(situation: Situation, rules: ProofRules, now: Date): Decision {
  const verdict = proveAbsence(situation, rules, now);
  if (verdict.kind === "unproven") {
    return {
      kind: "unproven",
      reason: "no object of the row was found, and that alone proves nothing",
      missing: verdict.missing,
      until: verdict.until,
    };
  }
  const { intent } = situation;
  const ends = addMs(intent.createdAt, rules.retryHorizonMs);
  const proof = verdict.proof;
  const [other] = intent.repeatConfirmed ? [] : situation.siblings;
  if (other !== undefined) {
    // Whatever the key still protects: a retry of this row, or a new one, would pay twice.
    return {
      kind: "fail_terminal",
      why: "absent",
      reason: `it never reached Stripe, and its purchase was paid by ${other.chargeId}`,
      advice: "The purchase is paid: neither retry this row nor mint a new intent for it.",
      objects: [],
      absence: proof,
    };
  }
  // A row without a key has nothing that a retry would replay.
  if (now < ends && intent.idempotencyKey !== null) {
    return {
      kind: "fail_retryable",
      reason: "it never reached Stripe, and its key still protects a retry",
      advice: `Retry with the same key before ${ends.toISOString()}, never with a new one.`,
      absence: proof,
    };
  }
  return {
    kind: "fail_terminal",
    why: "absent",
    reason:
      intent.idempotencyKey === null
        ? "it never reached Stripe, and no key protects a retry"
        : "it never reached Stripe, and its key no longer protects a retry",
    advice: "Mint a new intent with a new key; do not reuse the key.",
    objects: [],
    absence: proof,
  };
}
