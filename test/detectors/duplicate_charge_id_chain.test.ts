/** Rows and the transfers of one transaction. Case B36. */
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

const FOUR = [3, 5, 7, 9];

async function batch(): Promise<void> {
  for (const [index, log] of FOUR.entries()) {
    const n = String(index + 1);
    await chainRow(world, { id: `L${n}`, tx: "t1", nonce: `n${n}` });
    await transfer(world, { tx: "t1", log, nonce: `n${n}` });
  }
}

test("default: a fifth row without a transfer of its own is surplus (B36)", async () => {
  await batch();
  await chainRow(world, { id: "L5", tx: "t1", nonce: "n9" });
  expect(await world.judge()).toMatchObject([
    {
      code: "duplicate_charge_id",
      rail: "evm",
      intents: ["L1", "L2", "L3", "L4", "L5"],
      charges: FOUR.map((log) => chargeId("t1", log)),
      amountAtRisk: 0n,
      evidence: { surplus: ["L5"] },
    },
  ]);
});

test("behavior: four rows share the hash of four transfers", async () => {
  await batch();
  expect(await world.codes()).toEqual([]);
});

test("behavior: rows that only note the hash are paired with alike transfers in order", async () => {
  for (const log of FOUR) await transfer(world, { tx: "t1", log });
  for (const n of ["1", "2", "3", "4"]) await chainRow(world, { id: `L${n}`, tx: "t1" });
  expect(await world.codes()).toEqual([]);
  await chainRow(world, { id: "L5", tx: "t1" });
  expect(await world.judge()).toMatchObject([
    { code: "duplicate_charge_id", evidence: { surplus: ["L5"] } },
  ]);
});

test("behavior: two recorded rows with one nonce and one hash claim one payment", async () => {
  await transfer(world, { tx: "t1", nonce: "n1" });
  await chainRow(world, { id: "L1", tx: "t1", nonce: "n1" });
  await chainRow(world, { id: "L2", tx: "t1", nonce: "n1" });
  expect(await world.codes()).toContain("duplicate_charge_id critical");
});

test("behavior: a failed attempt that was sent again with the same nonce is no second claim", async () => {
  await transfer(world, { tx: "t1", nonce: "n1" });
  await chainRow(world, {
    id: "L1",
    tx: "t1",
    nonce: "n1",
    reference: "o-1",
    state: "in_flight",
    ageMs: 0,
  });
  await chainRow(world, { id: "L2", tx: "t1", nonce: "n1", reference: "o-1" });
  expect(await world.codes()).toEqual([]);
});
