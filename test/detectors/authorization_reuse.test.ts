/** One signature, several purchases. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { chain, chainRow, chainSettings, chargeId, transfer } from "../support/chain-rows.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await world.reset({ chains: [chainSettings()] });
  await chain(world);
});
afterAll(() => world.close());

test("default: one nonce under two payment identifiers", async () => {
  await transfer(world, { tx: "t1", nonce: "n1" });
  await chainRow(world, { id: "L1", nonce: "n1", paymentId: "pay_a" });
  await chainRow(world, { id: "L2", nonce: "n1", paymentId: "pay_b" });
  expect(await world.judge()).toMatchObject([
    {
      code: "authorization_reuse",
      severity: "warning",
      basis: "payment_id",
      intents: ["L1", "L2"],
      charges: [chargeId("t1", 1)],
      amountAtRisk: 10_000n,
    },
  ]);
});

test.each([
  ["another order", { reference: "o-1" }, { reference: "o-2" }, "reference"],
  ["another amount", { amount: 10_000 }, { amount: 20_000 }, "parameters"],
  ["both recorded", {}, {}, "recorded"],
])("behavior: %s", async (_, first, second, basis) => {
  await chainRow(world, { id: "L1", nonce: "n1", ...first });
  await chainRow(world, { id: "L2", nonce: "n1", ...second });
  const found = (await world.judge()).filter((one) => one.code === "authorization_reuse");
  expect(found).toMatchObject([{ basis }]);
});

test.each([
  ["the same payment sent again", { state: "failed_retryable" }, {}],
  [
    "a retry under one identifier",
    { paymentId: "pay_a", state: "reconciling" },
    { paymentId: "pay_a" },
  ],
])("behavior: %s is only a note", async (_, first, second) => {
  await transfer(world, { tx: "t1", nonce: "n1" });
  await chainRow(world, { id: "L1", nonce: "n1", ...first });
  await chainRow(world, { id: "L2", nonce: "n1", ...second });
  expect(await world.codes()).toEqual([]);
});

test("behavior: the nonces of two payers are two name spaces", async () => {
  await chainRow(world, { id: "L1", nonce: "n1", state: "key_minted" });
  await chainRow(world, {
    id: "L2",
    nonce: "n1",
    state: "key_minted",
    payer: `0x${"cc".repeat(20)}`,
    amount: 5,
  });
  expect(await world.codes()).toEqual([]);
});
