// Goal: invariants 2, 3 and 4 hold for every situation, not only for those somebody thought of.
// Method: random situations out of all states, statuses and holes; the decision is held to what
// must never happen.
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { INTENT_STATES } from "../../src/core/states.ts";
import { decide } from "../../src/resolve/decide.ts";
import { writes } from "../../src/resolve/decision.ts";
import type { Situation } from "../../src/resolve/situation.ts";
import {
  HOUR,
  NOW,
  RULES,
  absence,
  ago,
  charge,
  intent,
  payment,
  sibling,
  situation,
} from "./situations.ts";

const STATUSES = [
  "succeeded",
  "canceled",
  "processing",
  "requires_action",
  "requires_capture",
  "requires_confirmation",
  "requires_payment_method",
  "requires_magic",
];

/** Half of the rows have none: that is where absences come from. */
function sometimes<T>(list: fc.Arbitrary<T[]>): fc.Arbitrary<T[]> {
  return fc.oneof(fc.constant<T[]>([]), list);
}

const age = fc.integer({ min: 0, max: 40 * HOUR }).map(ago);

const intents = fc
  .record({
    // The states that an absence can settle are met more often, or few would reach its proof.
    state: fc.constantFrom(...INTENT_STATES, "reconciling", "reconciling", "reconciling"),
    createdAt: age,
    updatedAt: age,
    idempotencyKey: fc.constantFrom("k1", "k1", null),
    payee: fc.constantFrom(null, "acct_x"),
    repeatConfirmed: fc.boolean(),
    touchKnown: fc.constantFrom(true, true, true, false),
  })
  .map(intent);

const payments = sometimes(
  fc.array(
    fc
      .record({
        id: fc.constantFrom("pi_1", "pi_2"),
        status: fc.constantFrom(...STATUSES),
        failureCode: fc.constantFrom(null, "card_declined"),
        missingSince: fc.constantFrom(null, NOW),
      })
      .map(payment),
    { maxLength: 3 },
  ),
);

const charges = sometimes(
  fc.array(
    fc
      .record({
        chargeId: fc.constantFrom("ch_1", "ch_2", "ch_3"),
        paymentIntent: fc.constantFrom("pi_1", "pi_2", null),
        status: fc.constantFrom("pending", "succeeded", "failed"),
        captured: fc.boolean(),
        mirrored: fc.boolean(),
        net: fc.constantFrom(0n, 400n, 1000n),
        currency: fc.constantFrom("usd", "usd", "eur"),
        torn: fc.boolean(),
        createdAt: age,
      })
      .map(charge),
    { maxLength: 3 },
  ),
);

const facts = fc
  .record({
    gaps: fc.constantFrom([], [], [{ source: "stripe.charges", from: ago(HOUR), to: NOW }]),
    marked: fc.constantFrom([], [], [], ["pi_7"]),
    unmarkedTotal: fc.constantFrom(0, 0, 2),
    look: fc.constantFrom(null, absence().look, {
      kind: "id",
      id: "pi_7",
      found: false,
      at: NOW,
    } as const),
  })
  .map(absence);

const situations: fc.Arbitrary<Situation> = fc
  .record({
    intent: intents,
    payments,
    charges,
    siblings: fc.constantFrom([], [sibling()]),
    rivals: fc.constantFrom(
      [],
      [{ intentId: "in_2", mark: "key" as const, amount: 1n, currency: "usd", payee: null }],
    ),
    absence: facts,
  })
  .map(situation);

const RUNS = 2_000;

function holds(check: (known: Situation) => void): void {
  fc.assert(fc.property(situations, check), { numRuns: RUNS });
}

describe("every decision", () => {
  test("behavior: a final state is never written", () => {
    holds((known) => {
      if (!["recorded", "failed_terminal"].includes(known.intent.state)) return;
      expect(decide(known, RULES, NOW).kind).toBe("hold");
    });
  });

  test("behavior: a success is never called a failure", () => {
    holds((known) => {
      if (!known.charges.some((one) => one.succeeded)) return;
      expect(["record", "hold"]).toContain(decide(known, RULES, NOW).kind);
    });
  });

  test("behavior: nothing fails while the lists are incomplete or too young", () => {
    holds((known) => {
      const touched = Math.max(known.intent.updatedAt.getTime(), known.intent.createdAt.getTime());
      const young = touched + RULES.attemptWindowMs + RULES.safetyLagMs > NOW.getTime();
      if (known.absence.gaps.length === 0 && !young && known.intent.touchKnown) return;
      expect(["fail_terminal", "fail_retryable"]).not.toContain(decide(known, RULES, NOW).kind);
    });
  });

  test("behavior: nothing fails while an object of the row is open, unknown or denied", () => {
    holds((known) => {
      const final = ["canceled", "requires_payment_method"];
      const open =
        known.charges.some((one) => one.status === "pending") ||
        known.payments.some((one) => !final.includes(one.status) || one.missingSince !== null);
      if (!open) return;
      expect(["fail_terminal", "fail_retryable"]).not.toContain(decide(known, RULES, NOW).kind);
    });
  });

  test("behavior: an absence needs all of its proof, and only reconciling is settled by it", () => {
    holds((known) => {
      const decision = decide(known, RULES, NOW);
      if (!writes(decision) || !("absence" in decision) || decision.absence === null) return;
      expect(known.intent.state).toBe("reconciling");
      expect(known.payments).toEqual([]);
      expect(known.charges).toEqual([]);
      expect(known.absence).toMatchObject({ gaps: [], marked: [], unmarkedTotal: 0 });
      expect(known.absence.look?.kind).toBe("lists");
    });
  });

  test("behavior: what is recorded is its own success, and the only one that was kept", () => {
    holds((known) => {
      const decision = decide(known, RULES, NOW);
      if (decision.kind !== "record") return;
      expect(decision.charge.succeeded).toBe(true);
      expect(decision.charge.currency).toBe(known.intent.currency);
      const kept = known.charges.filter((one) => one.succeeded && one.net > 0n);
      expect(kept.length).toBeLessThanOrEqual(1);
      if (kept.length === 1 && !known.intent.repeatConfirmed) expect(known.siblings).toEqual([]);
    });
  });

  test("behavior: the generator reaches every kind of decision", () => {
    const seen = new Set(
      fc.sample(situations, { numRuns: RUNS, seed: 7 }).map((s) => decide(s, RULES, NOW).kind),
    );
    expect([...seen].sort()).toEqual([
      "fail_retryable",
      "fail_terminal",
      "hold",
      "record",
      "unproven",
      "wait",
    ]);
  });
});
