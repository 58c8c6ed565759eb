/** Goal: the examples of the README work as they stand there. */
import type { Pool, PoolClient } from "pg";
import type Stripe from "stripe";
import * as viem from "viem";
import { afterAll, beforeAll, expect, it } from "vitest";

import { LIMITS } from "../../src/ledger/ledger.ts";
import * as ledger from "../../src/ledger/ledger.ts";
import type { LedgerCode, Payment } from "../../src/ledger/ledger.ts";
import { withTx } from "../../src/store/tx.ts";
import { chainFault } from "../support/chain-world.ts";
import { readmeSection, runExample } from "../support/readme-example.ts";
import { clientOf } from "./client.ts";
import { openLedgerWorld } from "./world.ts";
import type { LedgerWorld } from "./world.ts";
import { chainColumns, openX402LedgerWorld } from "./x402-world.ts";

const HEADING = "Pay so that there is nothing to find";
const SECTION = readmeSection(HEADING);
const noChain = (await chainFault()) !== "";

interface ByCard {
  readonly order: (pool: Pool, id: string, cents: bigint) => Promise<void>;
  readonly chargeCustomer: (db: Pool, stripe: Stripe, call: object) => Promise<Payment>;
}

interface OnChain {
  readonly decide: (tx: PoolClient, id: string, terms: object) => Promise<unknown>;
  readonly fetchReport: (db: Pool, wallet: object, id: string) => Promise<unknown>;
}

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
  await world.fresh("own");
});
afterAll(() => world.close());

it("default", async () => {
  const { order, chargeCustomer } = runExample(HEADING, 0, { "tallyd/ledger": ledger }) as ByCard;
  await world.pool.query("create table orders (id text primary key)");
  await order(world.pool, "7", 1_250n);
  await order(world.pool, "7", 1_250n);
  const stripe = clientOf(world.stripe.url);
  const call = { intent_id: "order-7" };
  const [first, second] = await Promise.all([
    chargeCustomer(world.pool, stripe, call),
    chargeCustomer(world.pool, stripe, call),
  ]);
  expect(first.response).toEqual(second.response);
  expect(await world.charges()).toEqual(["1250 usd"]);
  await expect(order(world.pool, "7", 1_300n)).rejects.toMatchObject({ code: "conflict" });
});

it.skipIf(noChain)("default: over x402", async () => {
  const modules = { "tallyd/ledger": ledger, viem };
  const { decide, fetchReport } = runExample(HEADING, 1, modules) as OnChain;
  const chain = await openX402LedgerWorld();
  try {
    const { evm, line, pool } = chain;
    const { network, asset, payee } = chainColumns(evm);
    const terms = { url: `${line.url}/goods`, network, asset, payee };
    await withTx(pool, (tx) => decide(tx, "7", terms));
    await withTx(pool, (tx) => decide(tx, "7", terms));
    const wallet = { signer: evm.payer.account, rpcUrls: [evm.anvil.url] };
    const goods = await Promise.all([1, 2].map(() => fetchReport(pool, wallet, "7")));
    expect(goods[0]).toMatchObject({ status: 200, encoding: "utf8" });
    expect(goods[1]).toEqual(goods[0]);
    expect(await chain.transfers()).toBe(1);
  } finally {
    await chain.close();
  }
});

it("behavior: every code stands in its table, and every limit is the one in force", () => {
  const codes: Record<LedgerCode, true> = {
    ...{ failed: true, retryable: true, unknown: true, pending: true, in_progress: true },
    ...{ conflict: true, not_found: true, invalid: true },
  };
  for (const code of Object.keys(codes)) expect(SECTION).toContain(`\`${code}\``);
  const { inFlightMs, settleMs, horizonMs } = LIMITS;
  expect([inFlightMs / 60_000, settleMs / 60_000, horizonMs / 3_600_000]).toEqual([5, 6, 20]);
  expect(SECTION).toMatch(/after 5 minutes[^]*6 minutes[^]*20 hours/);
});
