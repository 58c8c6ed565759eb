/** The local chain: its contracts are what the sources say, and what it does is what tests need. */
import { readFileSync } from "node:fs";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { startAnvil } from "../../src/sandbox/chain/anvil.ts";
import { chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { ARTIFACTS, compileContracts } from "../support/compile-contracts.ts";

const fault = await chainFault();

test("default: the committed artifacts are compiled from the committed sources", () => {
  const kept = JSON.parse(readFileSync(ARTIFACTS, "utf8")) as unknown;
  expect(compileContracts()).toEqual(kept);
});

describe.skipIf(fault !== "")("chain", () => {
  let world: ChainWorld;
  beforeAll(async () => {
    world = await openChainWorld();
  });
  afterAll(() => world.close());

  test("behavior: an authorization moves money once, whoever submits it", async () => {
    const { chain, token, payer, payee } = world;
    const signed = await chain.sign(token, payer, payee.address, 5n);
    const first = await chain.submit(token, signed, { from: chain.accounts[3]! });
    const again = await chain.submit(token, signed);
    expect([first.status, again.status]).toEqual(["succeeded", "reverted"]);
    expect(first.transfers).toEqual([1]);
  });

  test("behavior: a higher fee replaces a waiting transaction under another hash", async () => {
    const { chain, token, payer, payee } = world;
    const signed = await chain.sign(token, payer, payee.address, 5n);
    await chain.automine(false);
    const count = await chain.anvil.rpc("eth_getTransactionCount", [chain.accounts[0], "pending"]);
    const accountNonce = Number(count);
    const fee = { wait: false, accountNonce };
    const low = await chain.submit(token, signed, { ...fee, gasPrice: 3_000_000_000n });
    const high = await chain.submit(token, signed, { ...fee, gasPrice: 9_000_000_000n });
    await chain.mine(1);
    await chain.automine(true);
    expect((await chain.receipt(low.txHash)).status).toBe("pending");
    expect((await chain.receipt(high.txHash)).status).toBe("succeeded");
  });

  test("behavior: two chains at once have ports of their own and end by themselves", async () => {
    const other = await startAnvil({ chainId: 7 });
    expect(other.url).not.toBe(world.anvil.url);
    expect(await other.rpc("eth_chainId")).toBe("0x7");
    await other.stop();
    await expect(other.rpc("eth_chainId")).rejects.toThrow();
  });
});
