/** Honest payments that look like trouble: nothing may be found about any of them. */
import { mint, move, pay, payByOtherCard, payDeclined, payHonestly } from "./agent.ts";
import { loseAnswer } from "./scenarios-double.ts";
import { NOTHING } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const plain: Scenario = {
  title: "ordinary payments",
  times: 180,
  run: async (deps) => {
    await payHonestly(deps, deps.purchase("order"));
    return NOTHING;
  },
};

const sameKey: Scenario = {
  title: "answer lost, retried with the same key",
  times: 12,
  run: async (deps) => {
    const purchase = deps.purchase("same-key");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    await loseAnswer(deps, purchase);
    const replay = await pay(deps, purchase);
    await move(deps, purchase.intentId, "recorded", { chargeId: replay.charge });
    return NOTHING;
  },
};

const twoOrders: Scenario = {
  title: "one customer buys the same twice, two orders",
  times: 8,
  run: async (deps) => {
    const first = deps.purchase("two-orders");
    await payHonestly(deps, first);
    const second = { ...deps.purchase("two-orders"), customer: first.customer };
    await payHonestly(deps, { ...second, amount: first.amount });
    return NOTHING;
  },
};

const twoTenants: Scenario = {
  title: "two tenants use the same order number",
  times: 5,
  run: async (deps) => {
    const first = deps.purchase("tenants");
    await payHonestly(deps, { ...first, account: "north" });
    const second = deps.purchase("tenants");
    await payHonestly(deps, { ...second, account: "south", reference: first.reference });
    return NOTHING;
  },
};

const secondCard: Scenario = {
  title: "declined, then paid by another card at once",
  times: 6,
  run: async (deps) => {
    const purchase = deps.purchase("second-card");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    const paymentIntent = await payDeclined(deps, purchase);
    await payByOtherCard(deps, paymentIntent);
    await move(deps, purchase.intentId, "recorded", { chargeId: paymentIntent });
    return NOTHING;
  },
};

const declined: Scenario = {
  title: "declined for good",
  times: 8,
  run: async (deps) => {
    const purchase = deps.purchase("declined");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    await pay(deps, purchase, { card: "pm_card_chargeDeclined" }).catch(() => undefined);
    const error = { type: "card_error", code: "card_declined" };
    await move(deps, purchase.intentId, "failed_terminal", { response: { error } });
    return NOTHING;
  },
};

const partialRefund: Scenario = {
  title: "a part is refunded",
  times: 6,
  run: async (deps) => {
    const charge = await payHonestly(deps, deps.purchase("part-refund"));
    await deps.stripe.refunds.create({ charge, amount: 100 });
    return NOTHING;
  },
};

const held: Scenario = {
  title: "authorised first, captured later",
  times: 5,
  run: async (deps) => {
    const purchase = deps.purchase("held");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    const hold = await pay(deps, purchase, { manualCapture: true });
    await deps.stripe.paymentIntents.capture(hold.paymentIntent);
    await move(deps, purchase.intentId, "recorded", { chargeId: hold.charge });
    return NOTHING;
  },
};

const cancelled: Scenario = {
  title: "cancelled before it was paid",
  times: 4,
  run: async (deps) => {
    const purchase = deps.purchase("cancelled");
    await mint(deps, purchase);
    await move(deps, purchase.intentId, "in_flight");
    const hold = await pay(deps, purchase, { manualCapture: true });
    await deps.stripe.paymentIntents.cancel(hold.paymentIntent);
    await move(deps, purchase.intentId, "failed_terminal");
    return NOTHING;
  },
};

/** Everything that must stay quiet. */
export const HONEST_SCENARIOS: readonly Scenario[] = [
  plain,
  sameKey,
  twoOrders,
  twoTenants,
  secondCard,
  declined,
  partialRefund,
  held,
  cancelled,
];
