/** Recorded rows that the chain does not confirm. Cases B34, B35, B39, B40. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import {
  authorization,
  chain,
  chainRow,
  chainSettings,
  transaction,
  transfer,
} from "../support/chain-rows.ts";
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

test("default: a reverted transaction brought nothing (B35 d)", async () => {
  await chainRow(world, { id: "L4", tx: "tD" });
  await transaction(world, "tD", "reverted");
  expect(await world.judge()).toMatchObject([
    { code: "state_drift", basis: "reverted", severity: "warning", intents: ["L4"], look: null },
  ]);
});

test("behavior: a canceled authorization", async () => {
  await chainRow(world, { id: "L1", nonce: "n1" });
  await authorization(world, "n1", "canceled");
  expect(await world.judge()).toMatchObject([{ basis: "canceled", look: null }]);
});

test("behavior: a block that a reorganisation took away, after a look", async () => {
  await transfer(world, { tx: "t1", nonce: "n1", status: "failed" });
  await chainRow(world, { id: "L1", nonce: "n1", tx: "t1" });
  const found = await world.judge();
  expect(found).toMatchObject([{ basis: "reorganised", look: { source: "evm", intent: "L1" } }]);
});

test("behavior: nothing on this chain, the same nonce on another (B40 L5)", async () => {
  await chainRow(world, { id: "L5", nonce: "n5" });
  await transfer(world, {
    tx: "t5",
    nonce: "n5",
    scope: "eip155:84532",
    owned: "unknown",
    from: `0x${"cc".repeat(20)}`,
  });
  const found = (await world.judge()).filter((one) => one.code === "state_drift");
  expect(found).toMatchObject([
    { basis: "never_existed", evidence: { seenOn: [expect.stringContaining("84532")] } },
  ]);
});

test("behavior: a hash that was replaced is no finding while its nonce was used (B35 a)", async () => {
  await chainRow(world, { id: "L1", nonce: "n1", tx: "tA" });
  await transfer(world, { tx: "tB", nonce: "n1" });
  expect(await world.codes()).toEqual([]);
});

test("behavior: blocks that are not read yet say nothing", async () => {
  await chain(world, { behindMs: 2 * 3_600_000 });
  await chainRow(world, { id: "L1", nonce: "n1" });
  expect(await world.codes()).toEqual([]);
});

test("behavior: a row from before the first block that is read is no finding", async () => {
  await world.reset({ chains: [chainSettings()] });
  await chain(world, { fromBlock: 500, sinceMs: 1_800_000 });
  await chainRow(world, { id: "L1", nonce: "n1", ageMs: 3_600_000 });
  await chainRow(world, { id: "L2", nonce: "n2", ageMs: 900_000 });
  expect(await world.judge()).toMatchObject([{ basis: "never_existed", intents: ["L2"] }]);
});

test("behavior: failed, and the authorization was used (B35 b)", async () => {
  await chainRow(world, { id: "L2", nonce: "n2", state: "failed_terminal" });
  await transfer(world, { tx: "tC", nonce: "n2" });
  expect(await world.judge()).toMatchObject([
    { code: "state_drift", severity: "critical", basis: "failed_but_paid" },
  ]);
});
