/** Purchases that are paid twice, each by another mistake of the retrying agent. */
import { mint, move, pay, payHonestly } from "./agent.ts";
import type { Purchase } from "./agent.ts";
import type { Scenario, SceneDeps } from "./scenario.ts";

/**
 * Pays over a line that loses the answer: Stripe has executed the call, the agent knows nothing.
 */
export async function loseAnswer(deps: SceneDeps, purchase: Purchase): Promise<void> {
  await pay(deps.lossy, purchase).catch(() => undefined);
}

const freshKey: Scenario = {
  title: "answer lost, retried with a fresh key",
  times: 6,
  run: async (deps) => {
    const purchase = deps.purchase("fresh-key");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    await loseAnswer(deps, purchase);
    const again = await pay(deps, purchase, { key: `${purchase.key}-again` });
    await move(deps, purchase.intentId, "recorded", { chargeId: again.charge });
    return { expected: [{ code: "double_charge", intents: [purchase.intentId] }] };
  },
};

const freshRow: Scenario = {
  title: "the same order planned again as a new row",
  times: 5,
  run: async (deps) => {
    const first = deps.purchase("replan");
    await payHonestly(deps, first);
    const intentId = `${first.intentId}-b`;
    await payHonestly(deps, { ...first, intentId, key: `${first.key}-b` });
    return { expected: [{ code: "double_charge", intents: [first.intentId, intentId] }] };
  },
};

const alike: Scenario = {
  title: "the same purchase twice, without an order number",
  times: 3,
  run: async (deps) => {
    const customer = await deps.stripe.customers.create({});
    const first = { ...deps.purchase("alike"), customer: customer.id, reference: null };
    await payHonestly(deps, first);
    const intentId = `${first.intentId}-b`;
    await payHonestly(deps, { ...first, intentId, key: `${first.key}-b` });
    return { expected: [{ code: "double_charge", intents: [first.intentId, intentId] }] };
  },
};

/** Pays twice, then gives the excess back; answers the refund's id. */
async function payAndReturn(deps: SceneDeps, name: string) {
  const first = deps.purchase(name);
  await payHonestly(deps, first);
  const intentId = `${first.intentId}-b`;
  const excess = await payHonestly(deps, { ...first, intentId, key: `${first.key}-b` });
  const expected = { code: "double_charge", intents: [first.intentId, intentId] };
  const refund = async (): Promise<string> =>
    (await deps.stripe.refunds.create({ charge: excess })).id;
  return { expected, refund, intentId };
}

const refunded: Scenario = {
  title: "paid twice, the excess refunded by a person",
  times: 3,
  run: async (deps) => {
    const { expected, refund } = await payAndReturn(deps, "refunded");
    return {
      expected: [expected],
      afterwards: async () => {
        await refund();
        return [{ ...expected, end: "closed" }];
      },
    };
  },
};

const refundFails: Scenario = {
  title: "paid twice, refunded, and the refund fails later",
  times: 2,
  run: async (deps) => {
    const { expected, refund, intentId } = await payAndReturn(deps, "refund-fails");
    return {
      expected: [expected],
      afterwards: async () => {
        const id = await refund();
        await deps.sandbox.control.idle();
        deps.sandbox.control.fail(id);
        return [expected, { code: "refund_drift", intents: [intentId] }];
      },
    };
  },
};

/** Everything that ends in a double charge. */
export const DOUBLE_SCENARIOS: readonly Scenario[] = [
  freshKey,
  freshRow,
  alike,
  refunded,
  refundFails,
];
