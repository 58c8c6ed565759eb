/** What anvil really does with blocks: tags, times, reorganisations, resets, and its own end. */
import { spawn } from "node:child_process";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { startAnvil } from "../../src/sandbox/chain/anvil.ts";
import { encode, openLocalChain } from "../../src/sandbox/chain/local-chain.ts";
import { chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";

const fault = await chainFault();

type Block = { readonly number: string; readonly hash: string; readonly timestamp: string } | null;

describe.skipIf(fault !== "")("blocks", () => {
  let world: ChainWorld;
  beforeAll(async () => {
    world = await openChainWorld();
  });
  afterAll(() => world.close());

  const block = (name: string): Promise<Block> =>
    world.anvil.rpc("eth_getBlockByNumber", [name, false]) as Promise<Block>;
  const pay = async () => {
    const { chain, token, payer, payee } = world;
    return chain.submit(token, await chain.sign(token, payer, payee.address, 5n));
  };

  test.each([
    [32, 68, 36],
    [2, 98, 96],
    [1, 99, 98],
    [0, 100, 100],
  ])("behavior: epochs of %i: safe and finalized", async (slotsInAnEpoch, safe, finalized) => {
    const anvil = await startAnvil({ slotsInAnEpoch, genesisSeconds: 1_700_000_000 });
    const chain = await openLocalChain(anvil);
    const numbers = async (): Promise<number[]> =>
      Promise.all(
        ["safe", "finalized"].map(async (tag) => {
          const found = (await anvil.rpc("eth_getBlockByNumber", [tag, false])) as Block;
          return Number(found?.number);
        }),
      );
    expect(await numbers()).toEqual([0, 0]);
    await chain.mine(100, 2);
    expect(await numbers()).toEqual([safe, finalized]);
    const { number, seconds } = await chain.head();
    expect(number).toBe(100);
    // Two seconds apart, and the first as late as the clock since the start says.
    expect(seconds - 1_700_000_000).toBeGreaterThanOrEqual(198);
    await chain.setNextTime(1_800_000_000);
    await chain.mine(1);
    expect((await chain.head()).seconds).toBe(1_800_000_000);
    await anvil.stop();
  });

  test("behavior: a reorganisation forgets a payment, moves another, and its old blocks", async () => {
    const { chain } = world;
    const [gone, moved] = [await pay(), await pay()];
    const old = await block(`0x${gone.blockNumber!.toString(16)}`);
    // The account's numbers must have no gap: who sent the lost one sends nothing of the rest.
    const other = chain.accounts[4]!;
    const kept = await chain.submit(
      world.token,
      await chain.sign(world.token, world.payer, world.payee.address, 5n),
      { from: other },
    );
    const head = await chain.head();
    await chain.reorg(3, [{ txHash: kept.txHash, block: 1 }]);
    expect((await chain.head()).number).toBe(head.number);
    expect((await chain.receipt(gone.txHash)).status).toBe("pending");
    expect((await chain.receipt(moved.txHash)).status).toBe("pending");
    expect(await world.anvil.rpc("eth_getTransactionByHash", [gone.txHash])).toBeNull();
    expect(await world.anvil.rpc("eth_getBlockByHash", [old?.hash, false])).toBeNull();
    const now = await chain.receipt(kept.txHash);
    expect([kept.blockNumber, now.blockNumber]).toEqual([head.number, head.number - 1]);
  });

  test("behavior: a replaced transaction has another hash, and one of the two is mined", async () => {
    const { chain, token, payer, payee } = world;
    const signed = await chain.sign(token, payer, payee.address, 5n);
    await chain.automine(false);
    const low = await chain.submit(token, signed, { wait: false });
    const high = await chain.replace(low.txHash);
    await chain.mine(1);
    await chain.automine(true);
    expect(high.txHash).not.toBe(low.txHash);
    expect((await chain.receipt(low.txHash)).status).toBe("pending");
    expect((await chain.receipt(high.txHash)).status).toBe("succeeded");
  });

  test("behavior: a reset makes another chain of the same name", async () => {
    const { chain } = world;
    const reset = await chain.remember();
    const before = await chain.head();
    const paid = await pay();
    await reset();
    expect(await chain.head()).toEqual(before);
    expect((await chain.receipt(paid.txHash)).status).toBe("pending");
  });

  test("behavior: a listed account can no longer be paid, burned money is a transfer", async () => {
    const { chain, token, payer } = world;
    const listed = chain.newWallet();
    const signed = await chain.sign(token, payer, listed.address, 5n);
    await chain.send(token.address, encode("blacklist", [listed.address, true]));
    expect(await chain.submit(token, signed)).toMatchObject({ status: "reverted", transfers: [] });
    await chain.mint(token, chain.accounts[0]!, 10n);
    const burned = await chain.send(token.address, encode("burn", [10n]));
    expect(burned).toMatchObject({ status: "succeeded", transfers: [0] });
  });

  test("behavior: it ends with the process that started it, killed or not", async () => {
    const script =
      'import { startAnvil } from "./src/sandbox/chain/anvil.ts";' +
      "const anvil = await startAnvil(); console.log(anvil.url);" +
      "setTimeout(() => undefined, 600_000);";
    const args = ["--import", "tsx", "--input-type=module", "-e", script];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const url = await new Promise<string>((resolve) => {
      child.stdout.on("data", (chunk: Buffer) => resolve(chunk.toString("utf8").trim()));
    });
    const ask = { method: "POST", headers: { "content-type": "application/json" } };
    const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';
    expect((await fetch(url, { ...ask, body })).ok).toBe(true);
    child.kill("SIGKILL");
    await expect
      .poll(
        () =>
          fetch(url, { ...ask, body }).then(
            () => "lives",
            () => "gone",
          ),
        { timeout: 10_000 },
      )
      .toBe("gone");
  });
});
