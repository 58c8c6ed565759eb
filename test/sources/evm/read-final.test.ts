/**
 * Goal: reading ahead loses nothing and keeps nothing too much; what is read says what viem says.
 * Method: a real EVM behind a door with faults; PostgreSQL behind.
 */
import { formatLog, parseAbi, parseEventLogs } from "viem";
import type { RpcLog } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/log.ts";
import type { ChainSettings } from "../../../src/core/settings.ts";
import { startRpcProxy } from "../../../src/sandbox/chain/rpc-proxy.ts";
import { openChains } from "../../../src/sources/evm/open-chains.ts";
import { parseLogs } from "../../../src/sources/evm/parse-logs.ts";
import { scanChain } from "../../../src/sources/evm/scan.ts";
import type { ChainReader, ScanOptions, Scanned } from "../../../src/sources/evm/scan.ts";
import { readLogs } from "../../../src/sources/evm/wire.ts";
import { getChain } from "../../../src/store/evm-chain.ts";
import { SCOPE, chainFault, openChainWorld } from "../../support/chain-world.ts";
import type { ChainWorld } from "../../support/chain-world.ts";
import { createTestDb } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";

const fault = await chainFault();
const MEGABYTE = 1_048_576;

let db: TestDb;
let world: ChainWorld;

beforeAll(async () => {
  if (fault === "") world = await openChainWorld();
});
afterAll(async () => {
  if (fault === "") await world.close();
});
beforeEach(async () => {
  db = await createTestDb({ template: "migrated" });
});
afterEach(async () => {
  world.proxy.set({});
  await db.close();
});

function open(chain: ChainSettings): ChainReader {
  const found = openChains([chain], () => undefined).get(chain.chainId);
  if (found === undefined) throw new Error("no reader");
  return found;
}

function scan(reader: ChainReader, options: Partial<ScanOptions> = {}): Promise<Scanned> {
  const deps = { pool: db.pool, clock: systemClock, log: silentLog, clockSlackMs: 300_000 };
  return scanChain(deps, reader, { signal: new AbortController().signal, ...options });
}

async function pay(value: bigint): Promise<void> {
  const { chain, token, payer, payee } = world;
  await chain.submit(token, await chain.sign(token, payer, payee.address, value));
}

/** Blocks of the stored charges of some blocks, and of the chain's transfers. */
async function stored(upTo: number): Promise<{ found: unknown; there: unknown }> {
  const rows = await db.pool.query<{ place: string }>(
    `select block_number || ' ' || log_index as place
       from tallyd.evm_transfer
      where final
      order by block_number, log_index`,
  );
  const list = (await world.chain.anvil.rpc("eth_getLogs", [
    { address: world.token.address, fromBlock: "0x0", toBlock: `0x${upTo.toString(16)}` },
  ])) as RpcLog[];
  const there = list
    .filter((log) => log.topics.length === 3 && log.data.length === 66)
    .map((log) => `${String(Number(log.blockNumber))} ${String(Number(log.logIndex))}`);
  return { found: rows.rows.map((row) => row.place), there };
}

describe.skipIf(fault !== "")("readFinal", () => {
  test("behavior: an outage in the middle keeps what was stored, in one piece, and goes on", async () => {
    for (let turn = 0; turn < 12; turn += 1) {
      await pay(1n);
      await world.chain.mine(10);
    }
    const reader = open(world.settings());
    const turns: number[] = [];
    const failed = await scan(reader, {
      onProgress: ({ done }) => {
        turns.push(done);
        if (turns.length === 1) world.proxy.set({ status: 503 });
      },
    });
    expect(failed.failed).toMatchObject({ code: "network" });
    const { final } = await getChain(db.pool, SCOPE);
    const head = (await world.chain.head()).number;
    expect(final?.number).toBe(failed.blocks - 1);
    expect(final?.number).toBeLessThan(head - 10);
    const kept = await stored(final?.number ?? 0);
    expect(kept.found).toEqual(kept.there);
    world.proxy.set({});
    expect(await scan(reader)).toMatchObject({ failed: null });
    const all = await stored(head);
    expect(all.found).toEqual(all.there);
  });

  test("behavior: a stop between two ranges leaves no work behind", async () => {
    await world.chain.mine(60);
    const stop = new AbortController();
    const reader = open(world.settings());
    const scanned = scan(reader, {
      signal: stop.signal,
      onProgress: () => {
        stop.abort();
      },
    });
    await expect(scanned).rejects.toThrow("abort");
    const { final } = await getChain(db.pool, SCOPE);
    expect(final).not.toBeNull();
    expect((await getChain(db.pool, SCOPE)).final).toEqual(final);
  });

  test("behavior: an amount that one node changes is seen, and nothing of it is stored", async () => {
    const startBlock = (await world.chain.head()).number + 1;
    await pay(5n);
    await world.chain.mine(5);
    const other = await startRpcProxy(world.anvil.url);
    other.set({ altered: true });
    const two = open(world.settings({ startBlock, rpcUrls: [world.proxy.url, other.url] }));
    expect((await scan(two)).failed?.message).toContain("disagree about the logs");
    const rows = await db.pool.query("select 1 from tallyd.charge");
    expect(rows.rowCount).toBe(0);
    other.set({});
    expect(await scan(two)).toMatchObject({ failed: null });
    await other.close();
  });

  test("behavior: lists that are too long for the memory are asked for in pieces", async () => {
    const { number } = await world.chain.head();
    await pay(6n);
    await world.chain.mine(3);
    world.proxy.set({ padBytes: 9 * MEGABYTE });
    const scanned = await scan(open(world.settings({ startBlock: number })));
    expect(scanned.failed).toBeNull();
    expect(scanned.charges).toBe(1);
  });

  test("default: logs are decoded as viem decodes them", async () => {
    await pay(2n ** 30n + 7n);
    const { token, payer, payee } = world;
    const raw = await world.chain.anvil.rpc("eth_getLogs", [
      { address: token.address, fromBlock: "0x0", toBlock: "latest" },
    ]);
    const ours = parseLogs(readLogs(raw), world.settings());
    const abi = parseAbi([
      "event Transfer(address indexed from, address indexed to, uint256 value)",
      "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
    ]);
    const theirs = parseEventLogs({ abi, logs: (raw as RpcLog[]).map((log) => formatLog(log)) });
    const transfers = theirs.flatMap(({ eventName, args, ...log }) =>
      eventName === "Transfer"
        ? [
            {
              place: [log.transactionHash, log.logIndex, Number(log.blockNumber), log.blockHash],
              token: log.address,
              sender: args.from.toLowerCase(),
              recipient: args.to.toLowerCase(),
              value: args.value,
            },
          ]
        : [],
    );
    expect(
      ours.transfers.map(({ txHash, logIndex, blockNumber, blockHash, ...one }) => ({
        place: [txHash, logIndex, blockNumber, blockHash],
        token: one.token,
        sender: one.sender,
        recipient: one.recipient,
        value: one.value,
      })),
    ).toEqual(transfers);
    const nonces = theirs.flatMap((log) =>
      log.eventName === "AuthorizationUsed" ? [log.args.nonce] : [],
    );
    expect(ours.transfers.flatMap((one) => one.nonce ?? [])).toEqual(nonces);
    expect(ours.transfers.at(-1)).toMatchObject({
      ...{ sender: payer.address, recipient: payee.address, value: 2n ** 30n + 7n },
    });
  });
});
