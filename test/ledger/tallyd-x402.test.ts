/** Goal: tallyd has nothing to say about what the ledger paid on chain, and settles the rest. */
import { createPublicClient, http } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { LedgerError, mintIntent, payX402 } from "../../src/ledger/ledger.ts";
import type { X402Deps } from "../../src/ledger/ledger.ts";
import { withTx } from "../../src/store/tx.ts";
import { openE2e } from "../e2e/world.ts";
import type { E2e } from "../e2e/world.ts";
import { chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { openLine } from "../support/x402/line.ts";
import type { Line } from "../support/x402/line.ts";
import { GOODS, PRICE, openShop } from "../support/x402/shop.ts";
import type { Shop } from "../support/x402/shop.ts";
import { chainColumns } from "./x402-world.ts";

const fault = await chainFault();

let world: E2e;
let evm: ChainWorld;
let shop: Shop;
let line: Line;

beforeAll(async () => {
  if (fault !== "") return;
  world = await openE2e();
  evm = await openChainWorld();
  shop = await openShop(evm);
  line = await openLine(shop.url);
  const { payers, payees, tokens, rpcUrls, chainId, startBlock, finality } = evm.settings();
  const block = { payers, payees, tokens, rpcUrls, chainId, startBlock, finality };
  await world.fresh("own", {
    STRIPE_API_KEY: undefined,
    EVM_CHAINS: JSON.stringify([block]),
    ORPHAN_GRACE: "1s",
  });
});
afterAll(async () => {
  if (fault !== "") return;
  await line.close();
  await shop.close();
  await evm.close();
  await world.close();
});

/** Mints and pays; answers the transaction, or the code of the refusal. */
async function buy(intentId: string, more: Partial<X402Deps> = {}): Promise<string> {
  await withTx(world.pool, (tx) =>
    mintIntent(tx, {
      ...{ intentId, accountId: "A", amount: PRICE, currency: "usdc", reference: intentId },
      request: { url: `${line.url}${GOODS}` },
      columns: chainColumns(evm),
    }),
  );
  const chains = [createPublicClient({ transport: http(evm.anvil.url) })];
  const deps = { db: world.pool, fetch, signer: evm.payer.account, chains, ...more };
  return payX402(deps, intentId).then(
    (paid) => paid.chargeId ?? "",
    (error: unknown) => (error instanceof LedgerError ? error.code : "killed"),
  );
}

describe.skipIf(fault !== "")("tallyd over payX402", () => {
  it("behavior: what is paid is quiet, what is in doubt gets settled by the same nonce", async () => {
    expect(await buy("buy-1")).toMatch(/^0x/);
    line.loseNext();
    expect(await buy("buy-2")).toMatch(/^0x/);
    line.loseNext();
    const crash = (step: string): void => {
      if (step === "doubted") throw new Error("killed");
    };
    expect(await buy("buy-3", { onStep: crash })).toBe("killed");
    await evm.chain.mine(8, 2);
    const outcome = await world.once();
    expect(outcome.open).toEqual([]);
    expect(outcome.exitCode).toBe(0);
    expect(outcome.rows["buy-3"]?.state).toBe("recorded");
    expect(await buy("buy-3")).toContain("0x");
    expect(shop.served()).toBe(3);
    const paid = await world.pool.query("select from tallyd.charge where status = 'succeeded'");
    expect(paid.rowCount).toBe(3);
  });
});
