/** Started and never finished. Case B04. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

test("default: in flight for 40 minutes, nothing at the provider (B04)", async () => {
  await world.intent({ id: "L2", state: "in_flight", key: "k2", amount: 2500, ageMs: 40 * MINUTE });
  const findings = await world.judge();
  expect(findings).toMatchObject([
    { code: "stuck_in_flight", severity: "warning", intents: ["L2"], amountAtRisk: 2500n },
  ]);
  expect(findings[0]?.evidence).toMatchObject({
    providerAnswer: "no provider object found",
    keyStillProtects: true,
  });
});

test("behavior: quiet below the limit, critical at six times the limit", async () => {
  await world.intent({ id: "L2", state: "in_flight", ageMs: 9 * MINUTE });
  expect(await world.judge()).toEqual([]);
  await world.intent({ id: "L2", state: "in_flight", updatedAgeMs: 61 * MINUTE });
  expect(await world.codes()).toEqual(["stuck_in_flight critical"]);
});

test("behavior: the resolver looks first, then it is told", async () => {
  await world.intent({ id: "L2", state: "in_flight", ageMs: 11 * MINUTE });
  expect(await world.judge()).toEqual([]);
  await world.pool.query(
    `insert into tallyd.ladder (intent_id, state, since, rung, next_at)
     values ('L2', 'in_flight', $1, 1, $1)`,
    [world.now],
  );
  expect(await world.codes()).toEqual(["stuck_in_flight warning"]);
});

test("behavior: nobody looks when resolving is off, so it is told at once", async () => {
  await world.reset({ resolve: "off" });
  await world.intent({ id: "L2", state: "in_flight", ageMs: 11 * MINUTE });
  expect(await world.codes()).toEqual(["stuck_in_flight warning"]);
});

test("behavior: a success of its own is the resolver's business", async () => {
  await world.intent({ id: "L2", state: "in_flight" });
  await world.charge({ id: "ch_1", mark: "L2" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: methods that settle days later have their own limit", async () => {
  await world.intent({ id: "L2", state: "in_flight", ageMs: 3 * DAY });
  await world.payment({ id: "pi_1", status: "processing", mark: "L2", asynchronous: true });
  expect(await world.judge()).toEqual([]);
  expect(await world.codes(12 * DAY)).toEqual(["stuck_in_flight critical"]);
});

test.each(["recorded", "failed_terminal", "reconciling"])(
  "behavior: %s is not in flight",
  async (state) => {
    await world.intent({ id: "L2", state });
    expect(await world.judge()).toEqual([]);
  },
);
