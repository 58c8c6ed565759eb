/**
 * Goal: what is on the chain is in the mirror, whatever the nodes do, and nothing else.
 * Method: a real EVM behind a door with faults; PostgreSQL behind. Cases B36, B38, B39, B40.
 */
import { randomBytes } from "node:crypto";

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/log.ts";
import type { ChainSettings } from "../../../src/core/settings.ts";
import { encode, submission } from "../../../src/sandbox/chain/local-chain.ts";
import { startRpcProxy } from "../../../src/sandbox/chain/rpc-proxy.ts";
import { lookNonce, lookTransaction } from "../../../src/sources/evm/look.ts";
import { openChains } from "../../../src/sources/evm/open-chains.ts";
import { scanChain } from "../../../src/sources/evm/scan.ts";
import type { ChainReader, ScanDeps, Scanned } from "../../../src/sources/evm/scan.ts";
import { getChain } from "../../../src/store/evm-chain.ts";
import { SCOPE, chainFault, openChainWorld } from "../../support/chain-world.ts";
import type { ChainWorld } from "../../support/chain-world.ts";
import { createTestDb, emptyTables } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";

const fault = await chainFault();

let db: TestDb;
let world: ChainWorld;
let reader: ChainReader;
let deps: ScanDeps;

beforeAll(async () => {
  db = await createTestDb({ template: "migrated" });
});
afterAll(() => db.close());
beforeEach(async () => {
  await emptyTables(db.pool, [
    "tallyd.evm_chain",
    "tallyd.evm_transfer",
    "tallyd.evm_authorization",
    "tallyd.evm_transaction",
    "tallyd.evm_endpoint",
    "tallyd.evm_balance",
    "tallyd.charge",
    "tallyd.refund",
    "tallyd.source",
    "tallyd.changed",
    "tallyd.intent",
  ]);
  deps = { pool: db.pool, clock: systemClock, log: silentLog, clockSlackMs: 300_000 };
  if (fault !== "") return;
  world = await openChainWorld();
  reader = open(world.settings());
});
afterEach(async () => {
  if (fault === "") await world.close();
});

function open(chain: ChainSettings): ChainReader {
  const found = openChains([chain], () => undefined).get(chain.chainId);
  if (found === undefined) throw new Error("no reader");
  return found;
}

function scan(one: ChainReader = reader): Promise<Scanned> {
  return scanChain(deps, one, { signal: new AbortController().signal });
}

async function pay(value: bigint): Promise<string> {
  const { chain, token, payer, payee } = world;
  const signed = await chain.sign(token, payer, payee.address, value);
  const sent = await chain.submit(token, signed);
  return `${SCOPE}:${sent.txHash}:${String(sent.transfers[0])}`;
}

async function charges(): Promise<string[]> {
  const found = await db.pool.query<{ line: string }>(
    `select charge_id || ' ' || amount || ' ' || status as line from tallyd.charge order by created_at, line`,
  );
  return found.rows.map((row) => row.line);
}

async function endpoints(): Promise<string[]> {
  const found = await db.pool.query<{ line: string }>(
    `select state || ': ' || coalesce(reason, '-') as line from tallyd.evm_endpoint order by state desc`,
  );
  return found.rows.map((row) => row.line);
}

async function many(count: number): Promise<void> {
  const { chain, token, payee, payer } = world;
  const batcher = await chain.deployBatcher();
  await chain.mint(token, batcher, 1_000_000n);
  for (let left = count; left > 0; left -= 200) {
    const times = BigInt(Math.min(200, left));
    await chain.send(batcher, encode("pay", [token.address, payee.address, 1n, times]));
  }
  expect(payer.address).not.toBe(payee.address);
}

describe.skipIf(fault !== "")("scanChain", () => {
  test("default: a payment is pending, then final, and its nonce is known", async () => {
    const id = await pay(10_000n);
    await scan();
    expect(await charges()).toEqual([`${id} 10000 pending`]);
    await world.chain.mine(5);
    expect(await scan()).toMatchObject({ failed: null, gone: 0 });
    expect(await charges()).toEqual([`${id} 10000 succeeded`]);
    const rows = await db.pool.query<{
      nonce: string;
      owned: string;
      currency: string;
      asset: string;
    }>("select nonce, owned, currency, asset from tallyd.charge");
    expect(rows.rows[0]).toMatchObject({
      owned: "yes",
      currency: "usdc",
      asset: world.token.address,
    });
    expect(rows.rows[0]?.nonce).toMatch(/^0x[0-9a-f]{64}$/);
    expect(await endpoints()).toEqual(["ok: -"]);
  });

  test("behavior: nothing, other tokens, mints and self-transfers are nobody's (B40)", async () => {
    const { chain, payee, payer, token } = world;
    const fake = await chain.deployToken();
    const stranger = chain.accounts[1]!;
    await chain.mint(fake, stranger, 500n);
    await chain.transfer(fake, stranger, payee.address, 500n);
    await chain.send(token.address, encode("transferFrom", [payer.address, payee.address, 0n]), {
      from: stranger,
    });
    await chain.mint(token, payee.address, 7n);
    await chain.mine(5);
    expect(await scan()).toMatchObject({ failed: null });
    expect(await charges()).toEqual([]);
  });

  test("behavior: four payments in one transaction, one of them failing (B36)", async () => {
    const { chain, payee, payer, token } = world;
    const batcher = await chain.deployBatcher();
    const signed = await Promise.all(
      [1n, 2n, 3n].map((v) => chain.sign(token, payer, payee.address, v)),
    );
    const again = signed[0]!;
    const calls = [...signed, again].map(submission);
    const sent = await chain.send(batcher, encode("batch", [token.address, calls]));
    await chain.mine(5);
    await scan();
    expect(sent.transfers).toHaveLength(3);
    expect((await charges()).map((line) => line.split(" ")[1])).toEqual(["1", "2", "3"]);
  });

  test("behavior: a transfer with a memo is counted once, and carries it (MPP)", async () => {
    const { chain, payee, token } = world;
    const memo = `0x${"ab".repeat(32)}`;
    const [account] = chain.accounts;
    await chain.mint(token, account!, 900n);
    await chain.send(token.address, encode("transferWithMemo", [payee.address, 900n, memo]));
    await chain.mine(5);
    const mpp = open(world.settings({ mpp: { realm: "api.example.com" } }));
    expect(await scan(mpp)).toMatchObject({ failed: null });
    const found = await db.pool.query(
      "select value, memo from tallyd.evm_transfer where role = 'charge'",
    );
    expect(found.rows).toEqual([{ value: "900", memo }]);
    expect(await charges()).toHaveLength(1);
  });

  test("behavior: a transfer back is a refund", async () => {
    const { chain, payee, payer, token } = world;
    await pay(10_000n);
    await chain.anvil.rpc("anvil_impersonateAccount", [payee.address]);
    await chain.anvil.rpc("anvil_setBalance", [payee.address, "0xde0b6b3a7640000"]);
    await chain.transfer(token, payee.address, payer.address, 10_000n);
    await chain.mine(5);
    await scan();
    const refunds = await db.pool.query("select amount, status from tallyd.refund");
    expect(refunds.rows).toEqual([{ amount: "10000", status: "succeeded" }]);
  });

  test("behavior: a node that answers every second request with nothing loses nothing (B38)", async () => {
    await many(2_000);
    await world.chain.mine(5);
    world.proxy.set({ emptyEvery: 2 });
    const scanned = await scan();
    expect(await charges()).toHaveLength(2_000);
    expect(scanned.failed?.message).toMatch(/gave (\d+ of 2001 logs|lists without)/);
    expect(await endpoints()).toEqual([expect.stringMatching(/^aside: gave (\d+ of 2001|lists)/)]);
  });

  test("behavior: a list that is always empty is found out by the balance", async () => {
    await pay(10_000n);
    await world.chain.mine(5);
    world.proxy.set({ empty: true });
    expect((await scan()).failed?.message).toContain("without 1 transfers that balances prove");
    expect(await endpoints()).toEqual([expect.stringContaining("aside: gave lists without")]);
    expect((await charges()).map((line) => line.split(" ")[1])).toEqual(["10000"]);
  });

  test("behavior: a balance that nothing explains is told and nothing is stopped", async () => {
    const { chain, payee, payer, token } = world;
    await pay(10_000n);
    await chain.send(token.address, encode("skim", [payer.address, payee.address, 5n]));
    await chain.mine(5);
    const scanned = await scan();
    expect(scanned.failed?.message).toMatch(/balance of 0x/);
    const wrong = await db.pool.query("select 1 from tallyd.evm_balance where actual <> expected");
    expect(wrong.rowCount).toBe(2);
    expect(await charges()).toHaveLength(1);
  });

  test("behavior: two endpoints, one with fewer logs: it is set aside, the other goes on", async () => {
    const other = await startRpcProxy(world.anvil.url);
    await pay(1n);
    await pay(2n);
    await world.chain.mine(5);
    other.set({ drop: true });
    const two = open(world.settings({ rpcUrls: [world.proxy.url, other.url] }));
    const scanned = await scan(two);
    expect(scanned.failed?.message).toContain("gave");
    expect(await charges()).toHaveLength(2);
    expect(await endpoints()).toEqual(["ok: -", expect.stringContaining("aside: gave")]);
    await pay(3n);
    await world.chain.mine(5);
    expect(await scan(two)).toMatchObject({ failed: null });
    expect(await charges()).toHaveLength(3);
    await other.close();
  });

  test("behavior: an endpoint whose lists always fail is left out, the other goes on", async () => {
    const other = await startRpcProxy(world.anvil.url);
    await pay(1n);
    await world.chain.mine(5);
    world.proxy.set({ noLogs: true });
    const two = open(world.settings({ rpcUrls: [world.proxy.url, other.url] }));
    expect(await scan(two)).toMatchObject({ failed: null });
    expect(await charges()).toHaveLength(1);
    expect((await endpoints()).toSorted()).toEqual([
      expect.stringMatching(/^aside: access/),
      "ok: -",
    ]);
    // Nobody else is left: that is said, and nothing is skipped.
    other.set({ noLogs: true });
    await pay(2n);
    await world.chain.mine(5);
    expect((await scan(two)).failed).not.toBeNull();
    expect(await charges()).toHaveLength(1);
    other.set({});
    expect(await scan(two)).toMatchObject({ failed: null });
    expect(await charges()).toHaveLength(2);
    await other.close();
  });

  test("behavior: a lagging node never moves the cursor past its head (B38)", async () => {
    const other = await startRpcProxy(world.anvil.url);
    await world.chain.mine(20);
    await pay(1n);
    await world.chain.mine(5);
    other.set({ lag: 15 });
    const two = open(world.settings({ rpcUrls: [world.proxy.url, other.url] }));
    await scan(two);
    const head = (await world.chain.head()).number;
    expect((await getChain(db.pool, SCOPE)).final?.number).toBeLessThanOrEqual(head - 15);
    expect((await charges()).map((line) => line.split(" ")[2])).toEqual(["pending"]);
    other.set({});
    await scan(two);
    expect((await charges()).map((line) => line.split(" ")[2])).toEqual(["succeeded"]);
    await other.close();
  });

  test.each([
    ["alchemy", { range: { blocks: 10, vendor: "alchemy" } }],
    ["infura", { range: { blocks: 10, vendor: "infura" } }],
    ["quicknode", { range: { blocks: 5, vendor: "quicknode" } }],
    ["a public node", { range: { blocks: 20, vendor: "public" } }],
    ["results, with the same range suggested", { results: 3 }],
    ["no batches", { batches: false }],
  ] as const)("behavior: limits of %s", async (_, faults) => {
    for (const value of [1n, 2n, 3n, 4n, 5n]) await pay(value);
    await world.chain.mine(60);
    world.proxy.set(faults);
    expect(await scan()).toMatchObject({ failed: null });
    expect(await charges()).toHaveLength(5);
  });

  test("behavior: one block that is always refused is read from its receipts (B38)", async () => {
    await pay(1n);
    const { number } = await world.chain.head();
    await pay(2n);
    await world.chain.mine(5);
    world.proxy.set({ refuse: number });
    expect(await scan()).toMatchObject({ failed: null });
    expect(await charges()).toHaveLength(2);
  });

  test("behavior: a payment that moves to another block is the same payment (B39)", async () => {
    const { chain, payee, payer, token } = world;
    const signed = await chain.sign(token, payer, payee.address, 10_000n);
    await chain.submit(token, signed);
    await scan();
    const data = submission(signed);
    await chain.reorg(1, [{ from: chain.accounts[0]!, to: token.address, data, block: 0 }]);
    await chain.mine(6);
    const scanned = await scan();
    expect(scanned.failed).toBeNull();
    const live = (await charges()).filter((line) => line.endsWith("succeeded"));
    expect(live).toHaveLength(1);
    expect((await getChain(db.pool, SCOPE)).reorganised).toBe(1);
  });

  test("behavior: a payment that a reorganisation takes away is failed, never charged", async () => {
    await pay(10_000n);
    await scan();
    await world.chain.reorg(1);
    await world.chain.mine(6);
    expect(await scan()).toMatchObject({ gone: 1, failed: null });
    expect((await charges()).map((line) => line.split(" ")[2])).toEqual(["failed"]);
  });

  test("error: a chain that was reset stops loudly and deletes nothing (B38)", async () => {
    await pay(10_000n);
    await world.chain.mine(6);
    await scan();
    const fresh = await openChainWorld();
    await fresh.chain.mine(40);
    const moved = open(world.settings({ rpcUrls: [fresh.proxy.url] }));
    expect((await scan(moved)).failed?.message).toMatch(/another chain|deeper than finality/);
    expect((await getChain(db.pool, SCOPE)).stoppedReason).not.toBeNull();
    expect(await charges()).toHaveLength(1);
    // The old endpoint is back: it goes on by itself.
    expect(await scan()).toMatchObject({ failed: null });
    expect((await getChain(db.pool, SCOPE)).stoppedReason).toBeNull();
    await fresh.close();
  });

  test.each([
    ["another chain id", { chainId: 1 }, "serves eip155:1"],
    ["no such tag", { tags: ["safe"] }, "chains.finality"],
    ["an outage", { status: 503 }, "HTTP 503"],
    ["a refused key", { status: 401 }, "HTTP 401"],
    ["two logs at one place (B36)", { doubled: true }, "two logs at index"],
  ])("error: %s", async (_, faults, message) => {
    await pay(1n);
    await pay(2n);
    await world.chain.mine(5);
    world.proxy.set(faults);
    expect((await scan()).failed?.message).toContain(message);
    expect(await charges()).toEqual([]);
  });

  test("error: wrong decimals stop the chain with both values", async () => {
    const { token } = world;
    const wrong = open(
      world.settings({ tokens: [{ address: token.address, symbol: "USDC", decimals: 18 }] }),
    );
    expect((await scan(wrong)).failed?.message).toMatch(/has 6 decimals, 18 are configured/);
  });

  test("behavior: a busy node is asked again, and ranges stay as they are", async () => {
    await pay(1n);
    await world.chain.mine(5);
    world.proxy.set({ busy: 1 });
    expect((await scan()).failed).toMatchObject({ code: "rate_limit" });
    expect(await scan()).toMatchObject({ failed: null });
    expect(reader.endpoints[0]?.rangeBlocks).toBeGreaterThanOrEqual(2_000);
  });

  test("behavior: an earlier start is read downwards, from where it was", async () => {
    await pay(1n);
    await world.chain.mine(30);
    await pay(2n);
    await world.chain.mine(6);
    const late = open(world.settings({ startBlock: 20 }));
    await scan(late);
    expect(await charges()).toHaveLength(1);
    expect(await scan()).toMatchObject({ failed: null });
    expect(await charges()).toHaveLength(2);
    expect((await getChain(db.pool, SCOPE)).fromBlock).toBe(0);
  });
});

describe.skipIf(fault !== "")("looks", () => {
  const question = (nonce: string) => ({
    token: null,
    authorizer: world.payer.address,
    nonce,
    from: new Date(Date.now() - 3_600_000),
    to: new Date(Date.now() + 3_600_000),
  });

  test("default: unused, used, canceled (B35)", async () => {
    const { chain, token, payer, payee } = world;
    const used = await chain.sign(token, payer, payee.address, 5n);
    await chain.submit(token, used);
    const nonce = `0x${randomBytes(32).toString("hex")}` as const;
    await chain.cancel(token, payer, nonce);
    await chain.mine(6);
    await scan();
    expect(await lookNonce(deps, reader, question(used.nonce))).toMatchObject({ state: "used" });
    expect(await lookNonce(deps, reader, question(nonce))).toMatchObject({ state: "canceled" });
    const never = `0x${"77".repeat(32)}`;
    expect(await lookNonce(deps, reader, question(never))).toMatchObject({
      state: "unused",
      endpoints: 1,
    });
  });

  test("behavior: a payment to somebody else is stored when the nonce is a row's (B35 e)", async () => {
    const { chain, token, payer } = world;
    const other = chain.newWallet();
    const signed = await chain.sign(token, payer, other.address, 5n);
    await chain.submit(token, signed);
    await chain.mine(6);
    const watching = open(world.settings({ payers: [] }));
    await scan(watching);
    expect(await charges()).toEqual([]);
    await db.pool.query(
      `insert into tallyd.intent (intent_id, account_id, rail, scope, amount, currency, state, raw_state, nonce,
         created_at, updated_at, row_hash, first_seen_at, seen_at)
       values ('L5', 'A', 'evm', $1, 5, 'usdc', 'reconciling', 'reconciling', $2, now(), now(), 'x', now(), now())`,
      [SCOPE, signed.nonce],
    );
    expect(await lookNonce(deps, watching, question(signed.nonce))).toMatchObject({
      state: "used",
    });
    expect((await charges()).map((line) => line.split(" ").slice(1).join(" "))).toEqual([
      "5 succeeded",
    ]);
  });

  test("behavior: a reverted, a waiting and an unknown transaction", async () => {
    const { chain, token, payer, payee } = world;
    const signed = await chain.sign(token, payer, payee.address, 5n);
    await chain.submit(token, signed);
    const reverted = await chain.submit(token, signed);
    await chain.mine(6);
    await scan();
    expect(await lookTransaction(deps, reader, reverted.txHash)).toEqual({
      status: "reverted",
      final: true,
    });
    await chain.automine(false);
    const waiting = await chain.submit(token, await chain.sign(token, payer, payee.address, 5n), {
      wait: false,
    });
    expect(await lookTransaction(deps, reader, waiting.txHash)).toEqual({
      status: "pending",
      final: false,
    });
    expect(await lookTransaction(deps, reader, `0x${"12".repeat(32)}`)).toEqual({
      status: "unknown",
      final: false,
    });
  });

  test("error: endpoints that disagree decide nothing (B38)", async () => {
    await world.chain.mine(6);
    await scan();
    world.proxy.set({ status: 503 });
    await expect(lookNonce(deps, reader, question(`0x${"77".repeat(32)}`))).rejects.toThrow(
      "HTTP 503",
    );
  });
});
