/** Keys are a short replay cache and not a ledger. Case B09. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const HOUR = 3_600_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test.each(["key_minted", "failed_retryable"])("default: %s for 25 hours", async (state) => {
  await world.intent({ id: "L1", state, ageMs: 23 * HOUR });
  expect(await world.judge()).toEqual([]);
  expect(await world.judge(2 * HOUR)).toMatchObject([
    { code: "retry_horizon_exceeded", severity: "warning", intents: ["L1"] },
  ]);
});

test("behavior: a row that was touched later is as old as its key", async () => {
  await world.intent({ id: "L1", state: "failed_retryable", ageMs: 30 * HOUR, updatedAgeMs: HOUR });
  expect(await world.codes()).toEqual(["retry_horizon_exceeded warning"]);
});

test.each(["recorded", "failed_terminal", "reconciling"])(
  "behavior: %s is not retried",
  async (state) => {
    await world.intent({ id: "L1", state, ageMs: 30 * HOUR });
    expect(await world.judge()).toEqual([]);
  },
);

test("behavior: a success of its own is not for a retry", async () => {
  await world.intent({ id: "L1", state: "failed_retryable", ageMs: 30 * HOUR });
  await world.charge({ id: "ch_1", mark: "L1" });
  expect(await world.judge()).toEqual([]);
});
