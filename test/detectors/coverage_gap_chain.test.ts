/** Blindness on a chain. Cases B36 (faulty node), B38, B39. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { CHAIN, PAYEE, USDC, chain, chainRow, chainSettings } from "../support/chain-rows.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset({ chains: [chainSettings()] }));
afterAll(() => world.close());

const quietScopes = async (): Promise<unknown[]> =>
  (await world.judgeSources()).filter((one) => one.scope === CHAIN);

async function endpoint(name: string, state: string, failures = 1, ageMs = 0): Promise<void> {
  await world.pool.query(
    `insert into tallyd.evm_endpoint (scope, endpoint, state, reason, since, failures)
     values ($1, $2, $3, 'gave 0 of 3 logs', $4, $5)`,
    [CHAIN, name, state, new Date(world.now.getTime() - ageMs), failures],
  );
}

test("default: a stopped chain", async () => {
  await chain(world, { stopped: "block 1000 has another hash" });
  expect(await quietScopes()).toMatchObject([
    { code: "coverage_gap", basis: "stopped", severity: "critical", rail: "evm" },
  ]);
});

test("behavior: a balance that the transfers do not explain", async () => {
  await chain(world);
  await world.pool.query(
    `insert into tallyd.evm_balance (scope, token, address, base_block, base_balance, checked_block,
       checked_at, expected, actual)
     values ($1, $2, $3, 0, 0, 1000, $4, 5, 7)`,
    [CHAIN, USDC, PAYEE, world.now],
  );
  expect(await quietScopes()).toMatchObject([{ basis: "balance", evidence: { difference: "2" } }]);
});

test.each([
  ["a liar is critical although others go on", "aside", 1, 0, "critical"],
  ["a node that fails is a warning while others go on", "failing", 3, 0, "warning"],
  ["so is one that stays behind", "behind", 1, 600_000, "warning"],
] as const)("behavior: %s", async (_, state, failures, ageMs, severity) => {
  await chain(world);
  await endpoint("one.example#1", "ok");
  await endpoint("two.example#2", state, failures, ageMs);
  expect(await quietScopes()).toMatchObject([{ basis: "endpoint", severity }]);
});

test("behavior: weather is no finding", async () => {
  await chain(world);
  await endpoint("one.example#1", "failing", 2);
  await endpoint("two.example#2", "behind", 1, 60_000);
  expect(await quietScopes()).toEqual([]);
});

test("behavior: rows of a chain that is not configured", async () => {
  await chain(world);
  await chainRow(world, { id: "L1", scope: "eip155:10", nonce: "n1" });
  expect((await world.judgeSources()).filter((one) => one.code === "config_error")).toMatchObject([
    { basis: "unwatched_chain", scope: "eip155:10" },
  ]);
});
