/** One key, one operation: keys are scoped per account and kind of call. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: one key for a charge and a refund", async () => {
  await world.intent({ id: "L1", key: "k1", charge: "ch_1" });
  await world.intent({ id: "L2", key: "k1", kind: "refund", state: "failed_terminal" });
  await world.charge({ id: "ch_1" });
  expect(await world.judge()).toMatchObject([
    { code: "key_reuse", severity: "warning", basis: "kinds", intents: ["L1", "L2"] },
  ]);
});

test("behavior: one key on two accounts of one scope", async () => {
  await world.intent({ id: "L1", account: "A", key: "k1", state: "failed_terminal" });
  await world.intent({ id: "L2", account: "B", key: "k1", state: "failed_terminal" });
  expect(await world.judge()).toMatchObject([{ basis: "accounts" }]);
});

test("behavior: connected accounts have name spaces of their own", async () => {
  await world.intent({ id: "L1", key: "k1", state: "failed_terminal" });
  const other = { id: "L2", account: "acct_C", key: "k1", scope: "acct_C/test" };
  await world.intent({ ...other, state: "failed_terminal" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: two marks of one charge that point to different rows", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.intent({ id: "L2", state: "failed_terminal" });
  await world.charge({ id: "ch_1", mark: "L2" });
  expect(await world.judge()).toMatchObject([
    { code: "key_reuse", basis: "marks", intents: ["L1", "L2"], charges: ["ch_1"] },
  ]);
});

test("behavior: marks that agree are no conflict", async () => {
  await world.intent({ id: "L1", key: "k1", charge: "pi_1" });
  await world.charge({ id: "ch_1", mark: "L1", keys: ["k1", "stripe-node-retry-1"] });
  expect(await world.judge()).toEqual([]);
});
