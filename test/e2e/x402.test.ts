/**
 * Goal: what the official x402 packages do on a real chain, seen by tallyd as it is.
 * Method: official client, resource server and facilitator; the team's rows are written from what
 * the client signed and saw. One chain and one table for each story.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { SCOPE, chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { PRICE } from "../support/x402/shop.ts";
import { tell } from "../support/x402/stories.ts";
import type { STORIES } from "../support/x402/stories.ts";
import { openX402World } from "../support/x402/world.ts";
import type { Seen, Signed, X402World } from "../support/x402/world.ts";
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
  x402 = await openX402World(evm);
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

/** Plays a story; what was signed first and told last is what most rows are about. */
async function play(story: keyof typeof STORIES) {
  const told = await tell(x402, story);
  return { ...told, first: told.signed[0]!, last: told.seen.at(-1)! };
}

/** The row that an agent writes about what it signed and saw. */
async function row(id: string, state: string, signed: Signed, seen?: Seen): Promise<void> {
  const hash = seen?.transaction;
  await world.row({
    id,
    state,
    amount: PRICE,
    currency: "usdc",
    ...(typeof hash === "string" && hash !== "" ? { charge: hash } : {}),
    ...(seen === undefined || seen.settled === null ? {} : { response: { ...seen.settled } }),
    more: {
      ...{ rail: "evm", network: SCOPE, asset: evm.token.address, reference: "order-1" },
      ...{ payer: evm.payer.address, payee: evm.payee.address },
      ...{ nonce: signed.nonce, payment_id: signed.paymentId ?? `pay_${id}` },
      valid_before: new Date(Number(signed.validBefore) * 1_000),
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
    const { first, last } = await play("A");
    expect(last).toMatchObject({ status: 200, settled: { success: true, network: SCOPE } });
    await row("A", "recorded", first, last);
    const outcome = await after();
    expect(outcome.open).toEqual([]);
    expect(outcome.exitCode).toBe(0);
    expect(await payments()).toBe(1);
  });

  it("B: the answer was lost, the client signed again: one double charge of two payments", async () => {
    const { first, signed, last } = await play("B");
    await row("B1", "reconciling", first);
    await row("B2", "recorded", signed[1]!, last);
    const outcome = await after();
    expect(await payments()).toBe(2);
    expect(outcome.open).toEqual(["double_charge critical"]);
    expect(outcome.incidents[0]).toMatchObject({ intents: ["B1", "B2"], amountAtRisk: "10000" });
    // Which of two the row stands for is for a person to say.
    expect(outcome.rows["B1"]?.state).toBe("reconciling");
  });

  it("C: the same header resent is refused as used, and is one payment that gets recorded", async () => {
    const { first, last } = await play("C");
    expect(last.status).toBe(402);
    await row("C", "reconciling", first, last);
    const outcome = await after();
    expect(await payments()).toBe(1);
    expect(outcome.open).toEqual([]);
    expect(outcome.rows["C"]).toMatchObject({ state: "recorded" });
  });

  it("D: three at once with one header are one payment, however often it was served", async () => {
    const { first, seen, served } = await play("D");
    expect(served).toBe(3);
    await row(
      "D",
      "recorded",
      first,
      seen.find((one) => one.status === 200),
    );
    const outcome = await after();
    expect(await payments()).toBe(1);
    expect(outcome.open).toEqual([]);
  });

  it("E: somebody else submits it first: refused as used, and paid", async () => {
    const { first, last } = await play("E");
    expect(last.status).toBe(402);
    await row("E", "failed_retryable", first, last);
    const outcome = await after();
    expect(outcome.rows["E"]?.state).toBe("recorded");
    expect(outcome.open).toEqual([]);
  });

  it("F: canceled: refused as used, and can never settle", async () => {
    const { first, last } = await play("F");
    expect(last.status).toBe(402);
    await row("F", "reconciling", first, last);
    const outcome = await after();
    expect(await payments()).toBe(0);
    expect(outcome.rows["F"]?.state).toBe("failed_terminal");
    expect(outcome.open).toEqual([]);
  });

  it("H: a higher fee replaces the transaction: the nonce finds the one that was mined", async () => {
    const { first, last } = await play("H");
    expect(last.status).toBe(200);
    await row("H", "recorded", first, last);
    const outcome = await after();
    expect(outcome.open).toEqual([]);
    expect(await payments()).toBe(1);
    const { json } = await world.run("explain", "H");
    const [charge] = (json as { charges: { transaction: string }[] }).charges;
    expect(charge).toMatchObject({ intent: "H", basis: "nonce" });
    // The client was told a hash that is in no block.
    expect(charge?.transaction).not.toBe(last.transaction);
  });

  it("G: settlement pending is no failure: mined later, it is recorded", async () => {
    await evm.chain.automine(false);
    x402.shop.waitFor(150);
    const seen = await x402.buy();
    expect(seen).toMatchObject({ status: 402, error: "settlement_pending" });
    await row("G", "reconciling", x402.signed[0]!, seen);
    expect((await world.once()).rows["G"]?.state).toBe("reconciling");
    await evm.chain.automine(true);
    const outcome = await after();
    expect(await payments()).toBe(1);
    expect(outcome.rows["G"]?.state).toBe("recorded");
    expect(outcome.open).toEqual([]);
  });

  it("I: a reorganisation after success: recorded, and nothing was received", async () => {
    const seen = await x402.buy();
    await row("I", "recorded", x402.signed[0]!, seen);
    await world.once();
    await evm.chain.reorg(1);
    const outcome = await after(12, 60);
    expect(await payments()).toBe(0);
    expect(outcome.open).toEqual(["state_drift warning"]);
    expect(outcome.incidents[0]).toMatchObject({ basis: "reorganised", intents: ["I"] });
  });
});
