/**
 * Goal: two daemons on one database and one chain: a payment signed twice is told once, an
 * ambiguous row is settled when its block is final, and the metrics say how the chain is read.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { startDaemon } from "../../src/daemon/run.ts";
import type { Daemon } from "../../src/daemon/run.ts";
import type { Authorization } from "../../src/sandbox/chain/local-types.ts";
import { SCOPE, chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { openStage } from "./stage.ts";
import type { TestStage } from "./stage.ts";

const fault = await chainFault();

describe.skipIf(fault !== "")("daemons on a chain", () => {
  let evm: ChainWorld;
  let stage: TestStage;
  let daemons: Daemon[] = [];

  beforeAll(async () => {
    evm = await openChainWorld();
    const { payers, payees, tokens, rpcUrls, chainId, startBlock, finality } = evm.settings();
    const block = { payers, payees, tokens, rpcUrls, chainId, startBlock, finality };
    stage = await openStage({
      EVM_CHAINS: JSON.stringify([block]),
      ...{
        LOCAL_BEAT: "1s",
        CHAINS_BEAT: "1s",
        ORPHAN_GRACE: "1s",
        LADDER_EVM: "1s,2s,4s,8s,60s",
      },
    });
    for (let n = 0; n < 2; n += 1) {
      const tallyd = await stage.open();
      daemons.push(await startDaemon(tallyd, { version: "0.0.0", routers: [], say: () => {} }));
    }
  });
  afterAll(async () => {
    await Promise.all(daemons.map((daemon) => daemon.stop()));
    daemons = [];
    await stage.close();
    await evm.close();
  });

  async function row(id: string, state: string, one: Authorization): Promise<void> {
    await stage.pool.query(
      `insert into public.payment_intents (intent_id, account_id, amount, currency, idempotency_key, state,
         reference, rail, network, asset, payer, payee, nonce, valid_before)
       values ($1, 'shop', $2, 'usdc', $1 || '-key', $3, $4, 'evm', $5, $6, $7, $8, $9, to_timestamp($10))`,
      [
        ...[id, String(one.value), state, `order-${id.slice(0, 1)}`, SCOPE, evm.token.address],
        ...[one.from, one.to, one.nonce, Number(one.validBefore)],
      ],
    );
  }

  async function pay(): Promise<Authorization> {
    const { chain, token, payer, payee } = evm;
    const one = await chain.sign(token, payer, payee.address, 10_000n);
    await chain.submit(token, one);
    return one;
  }

  it("behavior: settled at finality, told once, seen in the metrics", async () => {
    await row("A1", "reconciling", await pay());
    await row("B1", "recorded", await pay());
    await row("B2", "recorded", await pay());
    await evm.chain.mine(8, 1);
    const state = async (): Promise<unknown> => {
      const found = await stage.pool.query<{ state: string }>(
        "select state from payment_intents where intent_id = 'A1'",
      );
      return found.rows[0]?.state;
    };
    await expect.poll(state, { timeout: 20_000 }).toBe("recorded");
    const told = (): string[] =>
      stage.slack.control.messages
        .map((one) => one.text ?? "")
        .filter((text) => text.includes("double"));
    await expect.poll(() => told().length, { timeout: 20_000 }).toBe(1);
    const [first] = daemons;
    const scraped = await fetch(`http://127.0.0.1:${String(first!.adminPort)}/metrics`);
    const text = await scraped.text();
    expect(text).toContain(`tallyd_chain_stopped{scope="${SCOPE}"} 0`);
    expect(text).toContain(`tallyd_chain_endpoints{scope="${SCOPE}",state="ok"} 1`);
    expect(text).toMatch(/tallyd_chain_final_block\{scope="eip155:31337"\} \d+/);
    expect(told()).toHaveLength(1);
  });
});
