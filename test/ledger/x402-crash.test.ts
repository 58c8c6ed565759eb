/**
 * Goal: a buyer over x402 that is killed between two steps neither pays twice nor loses the
 * payment, and tallyd, run over what is left in the end, has nothing to say.
 * Method: real processes, `kill -9`, the official server, a real chain.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, describe, it } from "vitest";

import type { X402StepName } from "../../src/ledger/ledger.ts";
import { buildProgram } from "../support/built.ts";
import type { Built } from "../support/built.ts";
import { chainFault } from "../support/chain-world.ts";
import type { X402Order } from "./x402-crash-child.ts";
import { openX402LedgerWorld } from "./x402-world.ts";
import type { X402LedgerWorld } from "./x402-world.ts";

const WAIT = { timeout: 30_000 };
const MINUTES = 60;

const fault = await chainFault();
const privateKey = generatePrivateKey();
const signer = privateKeyToAccount(privateKey);

let child: Built;
let world: X402LedgerWorld;

beforeAll(async () => {
  if (fault !== "") return;
  child = await buildProgram("test/ledger/x402-crash-child.ts");
  world = await openX402LedgerWorld();
  const { chain, token } = world.evm;
  await chain.mint(token, signer.address.toLowerCase() as `0x${string}`, 1_000_000_000n);
});
afterAll(async () => {
  if (fault !== "") return;
  await world.close();
  await child.remove();
});

function start(intentId: string, killAt: string) {
  const where = { databaseUrl: world.url, rpcUrl: world.evm.anvil.url };
  const aheadMs = (world.deps.clock?.now().getTime() ?? Date.now()) - Date.now();
  const order: X402Order = { ...where, privateKey, intentId, killAt, aheadMs };
  return spawn(process.execPath, [child.file, JSON.stringify(order)], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** Whoever comes next, once the dead one's hold is over. */
async function next(intentId: string): Promise<void> {
  await world.advance(6 * MINUTES);
  await world.evm.chain.mine(6, 1);
  expect((await world.pay(intentId, { signer })).state).toBe("recorded");
}

const POINTS: readonly (readonly [X402StepName, string, boolean, number])[] = [
  ["asked", "key_minted", false, 0],
  ["admitted", "in_flight", false, 0],
  ["signed", "in_flight", false, 0],
  ["answered", "in_flight", false, 1],
  ["doubted", "reconciling", true, 1],
  ["stored", "recorded", false, 1],
];

describe.skipIf(fault !== "")("kill -9 over x402", () => {
  it.each(POINTS)("behavior: at %s: %s", async (at, leaves, lose, paid) => {
    const id = `kill-${at}`;
    await world.mint(id);
    const before = await world.transfers();
    if (lose) world.line.loseNext();
    const [, signal] = (await once(start(id, at), "exit")) as [number | null, string | null];
    expect(signal).toBe("SIGKILL");
    expect((await world.row(id)).state).toBe(leaves);
    expect((await world.transfers()) - before).toBe(paid);
    await next(id);
    expect((await world.transfers()) - before).toBe(1);
  });

  it("behavior: while the server settles", async () => {
    const { chain, anvil } = world.evm;
    await world.mint("kill-none");
    const before = await world.transfers();
    await chain.automine(false);
    const buyer = start("kill-none", "none");
    const waiting = async (): Promise<number> =>
      Number(((await anvil.rpc("txpool_status", [])) as { pending: string }).pending);
    await expect.poll(waiting, WAIT).toBe(1);
    buyer.kill("SIGKILL");
    await once(buyer, "exit");
    await chain.automine(true);
    expect((await world.row("kill-none")).state).toBe("in_flight");
    await next("kill-none");
    expect((await world.transfers()) - before).toBe(1);
  });
});
