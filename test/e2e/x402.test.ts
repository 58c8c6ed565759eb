/**
 * Goal: what the official x402 packages do on a real chain, seen by tallyd as it is.
 * Method: official client, resource server and facilitator; the team's rows are written from what
 * the client signed and saw. One chain and one table for each story.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { SCOPE, chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { PRICE, openX402 } from "../support/x402-world.ts";
import type { Seen, Signed, X402World } from "../support/x402-world.ts";
import { openE2e } from "./world.ts";
import type { E2e, Outcome } from "./world.ts";

const fault = await chainFault();

let world: E2e;
let evm: ChainWorld;
let x402: X402World;

beforeAll(async () => {
  world = await openE2e();
});
afterAll(() => world.close());
beforeEach(async () => {
  if (fault !== "") return;
  evm = await openChainWorld();
  x402 = await openX402(evm);
  const { payers, payees, tokens, rpcUrls, chainId, startBlock, finality } = evm.settings();
  const block = { payers, payees, tokens, rpcUrls, chainId, startBlock, finality };
  await world.fresh("own", {
    STRIPE_API_KEY: undefined,
    EVM_CHAINS: JSON.stringify([block]),
    ORPHAN_GRACE: "1s",
  });
});
afterEach(async () => {
  if (fault !== "") return;
  await x402.close();
  await evm.close();
});

function last(): Signed {
  const signed = x402.signed.at(-1);
  if (signed === undefined) throw new Error("nothing was signed");
  return signed;
}

/** The row that an agent writes about what it signed and saw. */
async function row(id: string, state: string, signed: Signed, seen?: Seen): Promise<void> {
  const hash = seen?.settled?.["transaction"];
  await world.row({
    id,
    state,
    amount: PRICE,
    currency: "usdc",
    ...(typeof hash === "string" && hash !== "" ? { charge: hash } : {}),
    ...(seen?.settled === null || seen === undefined ? {} : { response: seen.settled }),
    more: {
      ...{ rail: "evm", network: SCOPE, asset: evm.token.address, reference: "order-1" },
      ...{ payer: evm.payer.address, payee: evm.payee.address },
      ...{ nonce: signed.nonce, valid_before: signed.validBefore, payment_id: `pay_${id}` },
    },
  });
}

async function after(blocks = 8, secondsApart = 2): Promise<Outcome> {
  await evm.chain.mine(blocks, secondsApart);
  return world.once();
}

async function payments(): Promise<number> {
  const found = await world.pool.query("select from tallyd.charge where status = 'succeeded'");
  return found.rowCount ?? 0;
}

describe.skipIf(fault !== "")("x402", () => {
  it("A: a normal payment is quiet", async () => {
    const seen = await x402.buy();
    expect(seen).toMatchObject({ status: 200, settled: { success: true, network: SCOPE } });
    await row("A", "recorded", last(), seen);
    const outcome = await after();
    expect(outcome.open).toEqual([]);
    expect(outcome.exitCode).toBe(0);
    expect(await payments()).toBe(1);
  });

  it("B: the answer was lost, the client signed again: one double charge of two payments", async () => {
    await x402.buy({ lose: true });
    await row("B1", "reconciling", last());
    const seen = await x402.buy();
    await row("B2", "recorded", last(), seen);
    const outcome = await after();
    expect(await payments()).toBe(2);
    expect(outcome.open).toEqual(["double_charge critical"]);
    expect(outcome.incidents[0]).toMatchObject({ intents: ["B1", "B2"], amountAtRisk: "10000" });
    // Which of two the row stands for is for a person to say.
    expect(outcome.rows["B1"]?.state).toBe("reconciling");
  });

  it("C: the same header resent is refused as used, and is one payment that gets recorded", async () => {
    await x402.buy({ lose: true });
    const again = await x402.resend(last().header);
    expect(again.status).toBe(402);
    await row("C", "reconciling", last(), again);
    const outcome = await after();
    expect(await payments()).toBe(1);
    expect(outcome.open).toEqual([]);
    expect(outcome.rows["C"]).toMatchObject({ state: "recorded" });
  });

  it("D: three at once with one header are one payment, however often it was served", async () => {
    const { header } = await x402.sign();
    const seen = await Promise.all([header, header, header].map((one) => x402.resend(one)));
    expect(seen.filter((one) => one.status === 200)).toHaveLength(1);
    expect(x402.served()).toBeGreaterThanOrEqual(1);
    const paid = seen.find((one) => one.status === 200);
    await row("D", "recorded", last(), paid);
    const outcome = await after();
    expect(await payments()).toBe(1);
    expect(outcome.open).toEqual([]);
  });

  it("E: somebody else submits it first: refused as used, and paid", async () => {
    const { header, authorization } = await x402.sign();
    const [, , , stranger] = evm.chain.accounts;
    await evm.chain.submit(evm.token, authorization, { from: stranger! });
    const seen = await x402.resend(header);
    expect(seen.status).toBe(402);
    await row("E", "failed_retryable", last(), seen);
    const outcome = await after();
    expect(outcome.rows["E"]?.state).toBe("recorded");
    expect(outcome.open).toEqual([]);
  });

  it("F: canceled: refused as used, and can never settle", async () => {
    const { header, nonce } = await x402.sign();
    await evm.chain.cancel(evm.token, evm.payer, nonce);
    const seen = await x402.resend(header);
    expect(seen.status).toBe(402);
    await row("F", "reconciling", last(), seen);
    const outcome = await after();
    expect(await payments()).toBe(0);
    expect(outcome.rows["F"]?.state).toBe("failed_terminal");
    expect(outcome.open).toEqual([]);
  });

  it("H: a higher fee replaces the transaction: the nonce finds the one that was mined", async () => {
    const { authorization } = await x402.sign();
    await evm.chain.automine(false);
    const count = await evm.anvil.rpc("eth_getTransactionCount", [
      evm.chain.accounts[0],
      "pending",
    ]);
    const slow = { wait: false, accountNonce: Number(count) };
    const low = await evm.chain.submit(evm.token, authorization, {
      ...slow,
      gasPrice: 3_000_000_000n,
    });
    const high = await evm.chain.submit(evm.token, authorization, {
      ...slow,
      gasPrice: 9_000_000_000n,
    });
    await evm.chain.mine(1);
    await evm.chain.automine(true);
    await row("H", "recorded", last(), {
      status: 200,
      settled: { success: true, transaction: low.txHash },
    });
    const outcome = await after();
    expect(outcome.open).toEqual([]);
    const { json } = await world.run("explain", "H");
    expect(json).toMatchObject({
      charges: [{ transaction: high.txHash, intent: "H", basis: "nonce" }],
    });
  });

  it("G: settlement pending is no failure: mined later, it is recorded", async () => {
    await evm.chain.automine(false);
    const seen = await x402.buy();
    expect(seen.status).toBe(402);
    await row("G", "reconciling", last(), seen);
    expect((await world.once()).rows["G"]?.state).toBe("reconciling");
    await evm.chain.automine(true);
    const outcome = await after();
    expect(await payments()).toBe(1);
    expect(outcome.rows["G"]?.state).toBe("recorded");
    expect(outcome.open).toEqual([]);
  });

  it("I: a reorganisation after success: recorded, and nothing was received", async () => {
    const seen = await x402.buy();
    await row("I", "recorded", last(), seen);
    await world.once();
    await evm.chain.reorg(1);
    const outcome = await after(12, 60);
    expect(await payments()).toBe(0);
    expect(outcome.open).toEqual(["state_drift warning"]);
    expect(outcome.incidents[0]).toMatchObject({ basis: "reorganised", intents: ["I"] });
  });
});
