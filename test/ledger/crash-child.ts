/** A worker that is killed at one point: `crash-child.ts JSON`. It never cleans up. */
import pg from "pg";

import { executePayment, mintIntent } from "../../src/ledger/ledger.ts";
import { clientOf } from "./client.ts";

/** What the worker is to do. */
export interface Order {
  readonly databaseUrl: string;
  readonly stripeUrl: string;
  readonly intentId: string;
  /** A step of the ledger, or one of the minting's; "none": it is killed from outside. */
  readonly killAt: string;
}

const order = JSON.parse(process.argv[2] ?? "") as Order;

function killMe(at: string): Promise<void> {
  if (at !== order.killAt) return Promise.resolve();
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => undefined);
}

const db = new pg.Pool({ connectionString: order.databaseUrl });
const tx = await db.connect();
await tx.query("begin");
await mintIntent(tx, {
  ...{ intentId: order.intentId, accountId: "acct-9", amount: 500n, currency: "usd" },
  request: { payment_method: "pm_card_visa" },
});
await killMe("minted");
await tx.query("commit");
tx.release();
await killMe("committed");
await executePayment(
  { db, stripe: clientOf(order.stripeUrl), onStep: killMe },
  order.intentId,
).catch(() => undefined);
await db.end();
