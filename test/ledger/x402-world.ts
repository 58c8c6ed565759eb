/** A ledger that buys over x402 from the official server, on a real chain. */
import type { Pool } from "pg";
import { createPublicClient, http } from "viem";

import type { Clock } from "../../src/core/clock.ts";
import { ledgerTableSql, mintIntent, payX402, readIntent } from "../../src/ledger/ledger.ts";
import type { ChainProvider, LedgerIntent, Payment, X402Deps } from "../../src/ledger/ledger.ts";
import { withTx } from "../../src/store/tx.ts";
import { SCOPE, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { createTestDb } from "../support/db.ts";
import { openLine } from "../support/x402/line.ts";
import type { Line } from "../support/x402/line.ts";
import { GOODS, PRICE, openShop } from "../support/x402/shop.ts";
import type { Shop } from "../support/x402/shop.ts";

/** The world. */
export interface X402LedgerWorld {
  readonly pool: Pool;
  readonly url: string;
  readonly evm: ChainWorld;
  readonly shop: Shop;
  readonly line: Line;
  readonly deps: X402Deps;
  readonly mint: (intentId: string, amount?: bigint) => Promise<void>;
  readonly pay: (intentId: string, more?: Partial<X402Deps>, waitMs?: number) => Promise<Payment>;
  readonly row: (intentId: string) => Promise<LedgerIntent>;
  /** Transfers of the price to the shop so far. */
  readonly transfers: () => Promise<number>;
  /** Payments that were sent to the shop, decoded, in order. */
  readonly sent: () => readonly SentPayment[];
  /** Moves the clocks of ledger and chain. */
  readonly advance: (seconds: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface SentPayment {
  readonly payload: { readonly authorization: { readonly nonce: string } };
  readonly extensions?: Readonly<Record<string, { readonly info: { readonly id?: string } }>>;
}

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** The columns of an intent on chain. */
export function chainColumns(evm: ChainWorld) {
  const { token, payee } = evm;
  return { rail: "evm", network: SCOPE, asset: token.address, payee: payee.address };
}

/** Opens the world. */
export async function openX402LedgerWorld(): Promise<X402LedgerWorld> {
  const db = await createTestDb({ template: "empty" });
  await db.pool.query(ledgerTableSql());
  const evm = await openChainWorld();
  const shop = await openShop(evm);
  const line = await openLine(shop.url);
  let offset = 0;
  const clock: Clock = { now: () => new Date(Date.now() + offset) };
  const payments: SentPayment[] = [];
  const deps: X402Deps = {
    ...{ db: db.pool, clock, signer: evm.payer.account, chains: [providerOf(evm)] },
    fetch: (input, init) => {
      const header = new Headers(init?.headers).get("payment-signature");
      if (header !== null) {
        const text = Buffer.from(header, "base64").toString("utf8");
        payments.push(JSON.parse(text) as SentPayment);
      }
      return fetch(input, init);
    },
  };
  const url = `${line.url}${GOODS}`;
  return {
    ...{ pool: db.pool, url: db.url, evm, shop, line, deps },
    mint: async (intentId, amount = PRICE) => {
      await withTx(db.pool, (tx) =>
        mintIntent(tx, {
          ...{ intentId, accountId: "A", amount, currency: "usdc", clock, request: { url } },
          columns: chainColumns(evm),
        }),
      );
    },
    pay: (intentId, more = {}, waitMs = 0) => payX402({ ...deps, ...more }, intentId, { waitMs }),
    row: (intentId) => readIntent(deps, intentId),
    transfers: async () => {
      const topics = [TRANSFER, null, `0x${evm.payee.address.slice(2).padStart(64, "0")}`];
      const filter = { fromBlock: "0x0", toBlock: "latest", address: evm.token.address, topics };
      return ((await evm.anvil.rpc("eth_getLogs", [filter])) as unknown[]).length;
    },
    sent: () => payments,
    advance: async (seconds) => {
      offset += seconds * 1_000;
      await evm.chain.setNextTime(Math.ceil(clock.now().getTime() / 1_000));
      await evm.chain.mine(1);
    },
    close: async () => {
      await line.close();
      await shop.close();
      await evm.close();
      await db.close();
    },
  };
}

/** The chain's node as the ledger is given it: a client of viem's. */
export function providerOf(evm: ChainWorld): ChainProvider {
  return createPublicClient({ transport: http(evm.anvil.url) });
}
