/** The ladder has ended without proof. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

async function endLadder(id: string): Promise<void> {
  await world.pool.query(
    `insert into tallyd.ladder (intent_id, state, since, rung, next_at, ended_at, missing)
     values ($1, 'reconciling', $2, 6, $2, $2, '{"mark": "not set"}')`,
    [id, world.now],
  );
}

test("default: told with what is missing", async () => {
  await world.intent({ id: "L1", state: "reconciling", amount: 700 });
  expect(await world.judge()).toEqual([]);
  await endLadder("L1");
  expect(await world.judge()).toMatchObject([
    {
      code: "stuck_reconciling",
      severity: "critical",
      intents: ["L1"],
      amountAtRisk: 700n,
      evidence: { missing: { mark: "not set" } },
    },
  ]);
});

test("behavior: a row that moved on, or a success, ends it", async () => {
  await world.intent({ id: "L1", state: "reconciling" });
  await endLadder("L1");
  expect(await world.codes()).toEqual(["stuck_reconciling critical"]);
  await world.charge({ id: "ch_1", mark: "L1" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: an ended ladder of another state says nothing", async () => {
  await world.intent({ id: "L1", state: "failed_terminal" });
  await endLadder("L1");
  expect(await world.judge()).toEqual([]);
});
