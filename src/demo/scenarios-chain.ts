/** Payments over x402 on a local chain: honest ones, and the ways in which they go wrong. */
import { setTimeout as sleep } from "node:timers/promises";

import { submission, encode } from "../sandbox/chain/local-chain.ts";
import { chargeIdOf } from "./chain-charge.ts";
import { signFor, submit, writeRow } from "./chain-agent.ts";
import type { ChainDeps } from "./chain-agent.ts";
import { NOTHING } from "./scenario.ts";
import type { Expected, ExpectedResolution, Injected, SceneDeps } from "./scenario.ts";

/** As a scenario of cards, with the chain besides. */
export interface ChainScenario {
  readonly title: string;
  readonly times: number;
  readonly run: (deps: SceneDeps, chain: ChainDeps) => Promise<Injected>;
}

function settled(intentId: string, state: ExpectedResolution["state"]): Injected {
  return { expected: [], resolutions: [{ intentId, state }] };
}

const paidOnce: ChainScenario = {
  title: "paid once over x402",
  times: 12,
  run: async (deps, chain) => {
    const purchase = deps.purchase("x402");
    const authorization = await signFor(chain, purchase);
    const sent = await submit(chain, authorization);
    await writeRow(chain, { purchase, authorization, state: "recorded", hash: sent.txHash });
    return NOTHING;
  },
};

const signedAgain: ChainScenario = {
  title: "the receipt was lost, the agent signed again",
  times: 3,
  run: async (deps, chain) => {
    const first = deps.purchase("x402-lost");
    const again = { ...deps.purchase("x402-again"), ...orderOf(first) };
    const lost = await signFor(chain, first);
    await writeRow(chain, { purchase: first, authorization: lost, state: "reconciling" });
    await submit(chain, lost);
    const second = await signFor(chain, again);
    const sent = await submit(chain, second);
    const row = { purchase: again, authorization: second, state: "recorded", hash: sent.txHash };
    await writeRow(chain, row);
    const intents = [first.intentId, again.intentId];
    return { expected: [{ code: "double_charge", intents }] };
  },
};

function orderOf({ reference, amount }: ReturnType<SceneDeps["purchase"]>) {
  return { reference, amount };
}

const pending: ChainScenario = {
  title: "the server said settlement_pending, then it was mined",
  times: 4,
  run: async (deps, chain) => {
    const purchase = deps.purchase("x402-pending");
    const authorization = await signFor(chain, purchase);
    const response = { success: false, errorReason: "settlement_pending", transaction: "" };
    await writeRow(chain, { purchase, authorization, state: "reconciling", response });
    await submit(chain, authorization);
    return settled(purchase.intentId, "recorded");
  },
};

const repriced: ChainScenario = {
  title: "a higher fee changed the hash, the row has the old one",
  times: 3,
  run: async (deps, chain) => {
    const purchase = deps.purchase("x402-repriced");
    const authorization = await signFor(chain, purchase);
    const hash = `0x${authorization.nonce.slice(2).split("").reverse().join("")}`;
    await writeRow(chain, { purchase, authorization, state: "reconciling", hash });
    await submit(chain, authorization);
    return settled(purchase.intentId, "recorded");
  },
};

// Shorter than the demo, longer than the daemon needs to see the row.
const SHORT_LIFE_SECONDS = 8;

const neverSent: ChainScenario = {
  title: "signed and never sent: it can never settle",
  times: 4,
  run: async (deps, chain) => {
    const purchase = deps.purchase("x402-dead");
    const authorization = await signFor(chain, purchase, SHORT_LIFE_SECONDS);
    await writeRow(chain, { purchase, authorization, state: "reconciling" });
    return settled(purchase.intentId, "failed_terminal");
  },
};

const batched: ChainScenario = {
  title: "three payments collected in one transaction",
  times: 2,
  run: async (deps, chain) => {
    const { stage } = chain;
    const purchases = [0, 1, 2].map(() => deps.purchase("x402-batch"));
    const signed = await Promise.all(purchases.map((purchase) => signFor(chain, purchase)));
    const calls = signed.map(submission);
    const data = encode("batch", [stage.token.address, calls]);
    const sent = await stage.chain.send(stage.batcher, data);
    for (const [n, purchase] of purchases.entries()) {
      const authorization = signed[n];
      if (authorization === undefined) continue;
      const row = { purchase, authorization, state: "recorded", hash: sent.txHash };
      await writeRow(chain, row);
    }
    return NOTHING;
  },
};

const noRow: ChainScenario = {
  title: "our wallet paid and nobody wrote it down",
  times: 2,
  run: async (deps, chain) => {
    const authorization = await signFor(chain, deps.purchase("x402-orphan"));
    const sent = await submit(chain, authorization);
    const charge = chargeIdOf(chain.stage, sent);
    return { expected: [{ code: "orphan_charge", intents: [], charges: [charge] }] };
  },
};

const otherAmount: ChainScenario = {
  title: "less was paid than the row says",
  times: 2,
  run: async (deps, chain) => {
    const purchase = deps.purchase("x402-less");
    const authorization = await signFor(chain, { ...purchase, amount: purchase.amount - 100 });
    const sent = await submit(chain, authorization);
    await writeRow(chain, { purchase, authorization, state: "recorded", hash: sent.txHash });
    return { expected: [{ code: "amount_mismatch", intents: [purchase.intentId] }] };
  },
};

/** Everything that agents do on the chain, in any order. */
export const CHAIN_SCENARIOS: readonly ChainScenario[] = [
  ...[paidOnce, signedAgain, pending, repriced],
  ...[neverSent, batched, noRow, otherAmount],
];

// The daemon reads the tip every second here: it should know the payment before it is gone.
const SEEN_MS = 1_500;

/** Afterwards, when everything else is final: a block with a payment is replaced by empty ones. */
export async function playReorganisation(
  deps: SceneDeps,
  chain: ChainDeps,
): Promise<readonly Expected[]> {
  const purchase = deps.purchase("x402-reorg");
  const authorization = await signFor(chain, purchase, SHORT_LIFE_SECONDS);
  const sent = await submit(chain, authorization);
  await writeRow(chain, { purchase, authorization, state: "recorded", hash: sent.txHash });
  await sleep(SEEN_MS);
  const head = await chain.stage.chain.head();
  await chain.stage.chain.reorg(head.number - (sent.blockNumber ?? head.number) + 1);
  return [{ code: "state_drift", intents: [purchase.intentId] }];
}
