/** A buyer over x402 that is killed at one point: `x402-crash-child.ts JSON`. */
import pg from "pg";
import { privateKeyToAccount } from "viem/accounts";

import { payX402 } from "../../src/ledger/ledger.ts";
import type { ChainProvider } from "../../src/ledger/ledger.ts";

/** What the buyer is to do. */
export interface X402Order {
  readonly databaseUrl: string;
  readonly rpcUrl: string;
  readonly privateKey: `0x${string}`;
  readonly intentId: string;
  /** How far its clock, and the chain's, is ahead of the machine's. */
  readonly aheadMs: number;
  /** A step of the ledger; "none": it is killed from outside. */
  readonly killAt: string;
}

const order = JSON.parse(process.argv[2] ?? "") as X402Order;
// Not a client of viem's: it takes a second to start, and there is one child for every point.
const chain: ChainProvider = {
  request: async ({ method, params }) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const headers = { "content-type": "application/json" };
    const response = await fetch(order.rpcUrl, { method: "POST", headers, body });
    return ((await response.json()) as { result: unknown }).result;
  },
};
const db = new pg.Pool({ connectionString: order.databaseUrl });
await payX402(
  {
    ...{ db, fetch, signer: privateKeyToAccount(order.privateKey) },
    clock: { now: () => new Date(Date.now() + order.aheadMs) },
    chains: [chain],
    onStep: (at) => {
      if (at !== order.killAt) return undefined;
      process.kill(process.pid, "SIGKILL");
      return new Promise(() => undefined);
    },
  },
  order.intentId,
).catch(() => undefined);
await db.end();
