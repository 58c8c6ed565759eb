/** Trouble with one payment: no row, no end, another state, another amount, another key. */
import { mint, move, pay, payByOtherCard, payDeclined, payHonestly } from "./agent.ts";
import { loseAnswer } from "./scenarios-double.ts";
import type { ExpectedResolution, Injected, Scenario } from "./scenario.ts";

function settled(intentId: string, state: ExpectedResolution["state"]): Injected {
  return { expected: [], resolutions: [{ intentId, state }] };
}

const orphan: Scenario = {
  title: "the row was rolled back after the charge",
  times: 4,
  run: async (deps) => {
    const purchase = deps.purchase("rolled-back");
    const paid = await pay(deps, purchase);
    return { expected: [{ code: "orphan_charge", intents: [], charges: [paid.charge] }] };
  },
};

const crashed: Scenario = {
  title: "the agent died between charge and record",
  times: 6,
  run: async (deps) => {
    const purchase = deps.purchase("crashed");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    await pay(deps, purchase);
    return settled(purchase.intentId, "recorded");
  },
};

const answerLost: Scenario = {
  title: "the answer was lost, the row is reconciling",
  times: 6,
  run: async (deps) => {
    const purchase = deps.purchase("answer-lost");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    await loseAnswer(deps, purchase);
    await move(deps, purchase.intentId, "reconciling");
    return settled(purchase.intentId, "recorded");
  },
};

const neverArrived: Scenario = {
  title: "the call never arrived, the row is reconciling",
  times: 4,
  run: async (deps) => {
    const purchase = deps.purchase("never-arrived");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "reconciling");
    return settled(purchase.intentId, "failed_retryable");
  },
};

const lateSuccess: Scenario = {
  title: "given up as declined, paid by another card later",
  times: 3,
  run: async (deps) => {
    const purchase = deps.purchase("late-success");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    const paymentIntent = await payDeclined(deps, purchase);
    const error = { type: "card_error", code: "card_declined" };
    await move(deps, purchase.intentId, "failed_terminal", { response: { error } });
    await payByOtherCard(deps, paymentIntent);
    return { expected: [{ code: "state_drift", intents: [purchase.intentId] }] };
  },
};

const stuck: Scenario = {
  title: "the agent died before the call",
  times: 3,
  run: async (deps) => {
    const purchase = deps.purchase("died");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    return { expected: [{ code: "stuck_in_flight", intents: [purchase.intentId] }] };
  },
};

const weekend: Scenario = {
  title: "a job that would resume after the weekend",
  times: 2,
  run: async (deps) => {
    const purchase = deps.purchase("weekend");
    await mint(deps, purchase, { ageHours: 60 });
    return { expected: [{ code: "retry_horizon_exceeded", intents: [purchase.intentId] }] };
  },
};

const tampered: Scenario = {
  title: "the amount of a paid row was changed",
  times: 3,
  run: async (deps) => {
    const purchase = deps.purchase("tampered");
    await payHonestly(deps, purchase);
    await deps.mirrored(purchase.intentId);
    await deps.pool.query(
      `update payment_intents
          set amount = amount + 500,
              updated_at = now()
        where intent_id = $1`,
      [purchase.intentId],
    );
    const intents = [purchase.intentId];
    return {
      expected: [
        { code: "fingerprint_conflict", intents },
        { code: "amount_mismatch", intents },
      ],
    };
  },
};

const wrongUnits: Scenario = {
  title: "major and minor units were mixed up",
  times: 2,
  run: async (deps) => {
    const purchase = deps.purchase("units");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    const paid = await pay(deps, purchase, { amount: purchase.amount * 100 });
    await move(deps, purchase.intentId, "recorded", { chargeId: paid.charge });
    return { expected: [{ code: "amount_mismatch", intents: [purchase.intentId] }] };
  },
};

const copied: Scenario = {
  title: "one charge was written on two rows",
  times: 2,
  run: async (deps) => {
    const purchase = deps.purchase("copied");
    const chargeId = await payHonestly(deps, purchase);
    const copy = deps.purchase("copied");
    await mint(deps, copy, { state: "recorded", chargeId });
    return {
      expected: [{ code: "duplicate_charge_id", intents: [purchase.intentId, copy.intentId] }],
    };
  },
};

const sharedKey: Scenario = {
  title: "a refund was sent under the key of its charge",
  times: 2,
  run: async (deps) => {
    const purchase = deps.purchase("shared-key");
    const charge = await payHonestly(deps, purchase);
    const refund = { ...purchase, intentId: `${purchase.intentId}-refund`, reference: null };
    await mint(deps, refund, { kind: "refund" });
    await deps.stripe.refunds
      .create({ charge }, { idempotencyKey: purchase.key })
      .catch(() => undefined);
    await move(deps, refund.intentId, "failed_terminal");
    return {
      expected: [{ code: "key_reuse", intents: [purchase.intentId, refund.intentId] }],
    };
  },
};

const invented: Scenario = {
  title: "recorded with a charge that Stripe does not know",
  times: 2,
  run: async (deps) => {
    const purchase = deps.purchase("invented");
    const chargeId = `ch_unknown${purchase.key.slice(-12)}`;
    await mint(deps, purchase, { state: "recorded", chargeId });
    return { expected: [{ code: "state_drift", intents: [purchase.intentId] }] };
  },
};

const disputed: Scenario = {
  title: "the customer disputes the payment",
  times: 2,
  run: async (deps) => {
    const purchase = deps.purchase("disputed");
    const charge = await payHonestly(deps, purchase);
    deps.sandbox.control.dispute(charge);
    return { expected: [{ code: "dispute_opened", intents: [purchase.intentId] }] };
  },
};

/** Everything that goes wrong with one payment. */
export const SINGLE_SCENARIOS: readonly Scenario[] = [
  orphan,
  crashed,
  answerLost,
  neverArrived,
  lateSuccess,
  stuck,
  weekend,
  tampered,
  wrongUnits,
  copied,
  sharedKey,
  invented,
  disputed,
];
