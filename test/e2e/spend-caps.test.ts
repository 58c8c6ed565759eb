/** Spend caps from outside: settings in, incidents and a message out, refunds end it. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { openE2e, openOf } from "./world.ts";
import type { E2e } from "./world.ts";

let world: E2e;
beforeAll(async () => {
  world = await openE2e();
});
afterAll(async () => {
  await world.close();
});
beforeEach(async () => {
  const caps = [
    { per: "account", currency: "usd", amount: "2000" },
    { per: "day", currency: "usd", amount: "2500" },
    { per: "operation", currency: "usd", amount: "2000" },
  ];
  await world.fresh("seed", { SPEND_CAPS: JSON.stringify(caps) });
});

async function buy(n: number, amount: number): Promise<void> {
  const id = String(n);
  await world.row({ id: `L${id}`, state: "recorded", charge: `ch_${id}`, amount, secondsAgo: 60 });
  world.pay({ id, amount, secondsAgo: 60, metadata: { intent_id: `L${id}` } });
}

it("default: what passes a cap is told with sum and excess, and refunds end it", async () => {
  await buy(1, 1_200);
  expect(await world.once()).toMatchObject({ exitCode: 0, open: [] });
  await buy(2, 1_000);
  const found = await world.once();
  expect(found.exitCode).toBe(3);
  expect(openOf(found, "spend_cap_exceeded")).toMatchObject([
    {
      ...{ basis: "account", amountAtRisk: "200", currency: "usd", operation: null },
      evidence: { sum: "2200", cap: "2000", excess: "200", newestIntent: "L2" },
    },
  ]);
  expect(found.messages.at(-1)).toContain("Critical: spend cap exceeded, 2.00 USD at risk");
  world.stripe.control.seed.refund({ id: "re_1", charge: "ch_1", amount: 200n });
  expect(await world.once()).toMatchObject({ exitCode: 0, open: [] });
});
