/**
 * Goal: behind the guard, the official x402 client and server neither pay twice nor lose an answer.
 * Method: official packages on a real chain, PostgreSQL, and a line that loses answers; what was
 * paid is read from the balance.
 */
import type { RequestHandler } from "express";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { createGateway, gatewayTableSql } from "../../src/gateway/gateway.ts";
import type { Gateway, Guard } from "../../src/gateway/gateway.ts";
import { openPool } from "../../src/store/pool.ts";
import { chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { PRICE } from "../support/x402/shop.ts";
import { openX402World } from "../support/x402/world.ts";
import type { X402World } from "../support/x402/world.ts";

const fault = await chainFault();
const ID = "pay_0123456789abcdef";

let db: TestDb;
let evm: ChainWorld;
let x402: X402World;
let proc: { readonly gateway: Gateway; readonly guard: Guard; readonly end: () => Promise<void> };
let requireId = false;
/** The process dies, as far as the table is concerned, between settling and storing. */
let losesAnswers = false;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
  await db.pool.query(gatewayTableSql("shop"));
});
afterAll(() => db.close());
beforeEach(async () => {
  if (fault !== "") return;
  requireId = false;
  losesAnswers = false;
  evm = await openChainWorld();
  proc = start();
  const front: RequestHandler = (request, response, next) => {
    void proc.guard(request, response, next);
  };
  x402 = await openX402World(evm, front);
});
afterEach(async () => {
  if (fault !== "") return;
  await x402.close();
  await proc.end();
  await evm.close();
});

function start(): typeof proc {
  const pool = openPool({ url: db.url, applicationName: "shop", max: 6 });
  const query = pool.query.bind(pool) as (...parts: unknown[]) => unknown;
  const losing = (...parts: unknown[]): unknown =>
    losesAnswers && String(parts[0]).includes("set state = 'done'")
      ? Promise.reject(new Error("Connection terminated unexpectedly"))
      : query(...parts);
  Object.assign(pool, { query: losing });
  const gateway = createGateway({ pool, schema: "shop" });
  const guard = gateway.payments({ requireId });
  const end = async (): Promise<void> => {
    gateway.close();
    await pool.end();
  };
  return { gateway, guard, end };
}

async function restart(): Promise<void> {
  await proc.end();
  proc = start();
}

async function payments(): Promise<bigint> {
  const owner = evm.payee.address.slice(2).padStart(64, "0");
  const call = { to: evm.token.address, data: `0x70a08231${owner}` };
  return BigInt((await evm.anvil.rpc("eth_call", [call, "latest"])) as string) / PRICE;
}

function told(signed: { readonly headers: Readonly<Record<string, string>> }) {
  return fetch(`${x402.line.url}/goods`, { headers: signed.headers });
}

describe.skipIf(fault !== "")("x402 behind the guard", () => {
  it("default: a lost answer, the same payment resent: paid once, made once, answered", async () => {
    const signed = await x402.sign(ID);
    x402.line.loseNext();
    expect((await x402.send(signed)).status).toBeNull();
    const seen = await x402.send(signed);
    expect(seen).toMatchObject({ status: 200, success: true });
    expect(seen.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    const again = await told(signed);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await again.json()).toEqual({ goods: 1 });
    expect(await payments()).toBe(1n);
    expect(x402.shop.served()).toBe(1);
    expect(proc.gateway.counters.replays).toBe(2);
  });

  it("behavior: a restart in between", async () => {
    const signed = await x402.sign(ID);
    x402.line.loseNext();
    await x402.send(signed);
    await restart();
    expect(await x402.send(signed)).toMatchObject({ status: 200, success: true });
    expect(await payments()).toBe(1n);
    expect(x402.shop.served()).toBe(1);
  });

  it("behavior: settled, and dead before the answer was stored: in doubt, never paid again", async () => {
    const signed = await x402.sign(ID);
    losesAnswers = true;
    x402.line.loseNext();
    await x402.send(signed);
    await restart();
    losesAnswers = false;
    const resent = await told(signed);
    expect(await resent.json()).toMatchObject({ status: 409, code: "outcome_unknown" });
    expect((await x402.buy(ID)).status).toBe(409);
    expect(await payments()).toBe(1n);
    expect(x402.shop.served()).toBe(1);
  });

  it("behavior: the client signs anew under the same identifier: refused, not paid again", async () => {
    x402.line.loseNext();
    await x402.buy(ID);
    expect((await x402.buy(ID)).status).toBe(409);
    expect(x402.signed).toHaveLength(2);
    expect(await payments()).toBe(1n);
    expect(proc.gateway.counters.conflicts).toBe(1);
    // What it signed first is what brings the answer.
    expect((await x402.send(x402.signed[0]!)).status).toBe(200);
  });

  it("behavior: three at once with one payment: paid once, made once, three answers", async () => {
    const signed = await x402.sign(ID);
    const seen = await Promise.all([1, 2, 3].map(() => x402.send(signed)));
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(seen.map(({ transaction }) => transaction)).size).toBe(1);
    expect(await payments()).toBe(1n);
    expect(x402.shop.served()).toBe(1);
  });

  it("behavior: two identifiers are two purchases; none is guarded by what was signed", async () => {
    await x402.buy(ID);
    await x402.buy("pay_another_one_0001");
    const signed = await x402.sign();
    await x402.send(signed);
    expect((await x402.send(signed)).status).toBe(200);
    expect(await payments()).toBe(3n);
    expect(x402.shop.served()).toBe(3);
  });

  it("error: 400 without an identifier that is required", async () => {
    requireId = true;
    await restart();
    expect((await x402.buy()).status).toBe(400);
    expect(await payments()).toBe(0n);
    expect((await x402.buy(ID)).status).toBe(200);
  });

  it("behavior: a canceled authorization is refused each time, and the identifier stays free", async () => {
    const signed = await x402.sign(ID);
    await evm.chain.cancel(evm.token, evm.payer, signed.nonce);
    expect((await x402.send(signed)).status).toBe(402);
    expect((await x402.send(signed)).status).toBe(402);
    expect((await x402.buy(ID)).status).toBe(200);
    expect(await payments()).toBe(1n);
  });

  it("behavior: settlement pending, then mined: in doubt, and no second payment under this identifier", async () => {
    const signed = await x402.sign(ID);
    await evm.chain.automine(false);
    x402.shop.waitFor(150);
    expect(await x402.send(signed)).toMatchObject({ status: 402, error: "settlement_pending" });
    await evm.chain.automine(true);
    await evm.chain.mine(1);
    const resent = await told(signed);
    expect(resent.status).toBe(409);
    expect(await resent.json()).toMatchObject({ code: "outcome_unknown" });
    expect((await x402.buy(ID)).status).toBe(409);
    expect(await payments()).toBe(1n);
  });
});
