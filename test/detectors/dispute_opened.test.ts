/** Disputes of charges that we know. Case B30. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await world.reset();
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1" });
});
afterAll(() => world.close());

const dispute = { id: "du_1", charge: "ch_1", amount: 1000 };

test("default: a dispute is critical and tied to its row", async () => {
  await world.dispute({ ...dispute, status: "needs_response", reason: "duplicate" });
  expect(await world.judge()).toMatchObject([
    {
      code: "dispute_opened",
      severity: "critical",
      basis: "duplicate",
      intents: ["L1"],
      charges: ["ch_1"],
    },
  ]);
});

test("behavior: an inquiry takes no money", async () => {
  await world.dispute({ ...dispute, status: "warning_needs_response", refundable: true });
  expect(await world.codes()).toEqual(["dispute_opened info"]);
});

test.each(["won", "warning_closed", "prevented"])("behavior: %s ends it", async (status) => {
  await world.dispute({ ...dispute, status: "needs_response" });
  expect(await world.codes()).toEqual(["dispute_opened critical"]);
  await world.dispute({ ...dispute, status });
  expect(await world.judge()).toEqual([]);
});

test("behavior: a lost one stays until a person closes it", async () => {
  await world.dispute({ ...dispute, status: "lost" });
  expect(await world.codes()).toEqual(["dispute_opened critical"]);
});
