/**
 * A scan of a filled chain, with all that makes it complete (two readings, block heads, balances,
 * stored in PostgreSQL), against raw `eth_getLogs` of the same ranges: the answers are fetched as
 * text, one after the other, and neither parsed nor kept. Then the same chain behind a node that
 * answers every second list with nothing, read by viem and by tallyd.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { createPublicClient, http, parseAbiItem } from "viem";
import type { Pool } from "pg";

import type { ChainSettings } from "../../src/core/settings.ts";
import { encode } from "../../src/sandbox/chain/local-chain.ts";
import { transferFilters } from "../../src/sources/evm/topics.ts";
import { openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import type { BenchWorld, Measured } from "./bench.ts";
import type { ChildScan } from "./chain-child.ts";
import { freshDatabase, seconds } from "./database.ts";

const LOGS = 40_000;
// Transfers of one transaction; a block of the local chain holds this much gas.
const PER_BLOCK = 200;
// Blocks of a page: what most plans take, and what viem gets here.
const WIDE = 2_000;
const PAGE_BLOCKS = 20;
const CHILD = fileURLToPath(new URL("chain-child.ts", import.meta.url));
const CHILD_OUTPUT_MAX = 16 * 1_048_576;

interface List {
  readonly fromBlock: string;
  readonly toBlock: string;
}

async function fill(world: ChainWorld): Promise<void> {
  const { chain, token, payee } = world;
  const batcher = await chain.deployBatcher();
  await chain.mint(token, batcher, BigInt(LOGS));
  const data = encode("pay", [token.address, payee.address, 1n, BigInt(PER_BLOCK)]);
  for (let left = LOGS; left > 0; left -= PER_BLOCK) await chain.send(batcher, data);
  await chain.mine(10);
}

/** Fetches the lists as text and lets them go. */
async function raw(url: string, lists: readonly unknown[]): Promise<number> {
  let characters = 0;
  for (const list of lists) {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getLogs", params: [list] }),
    });
    characters += (await response.text()).length;
  }
  return characters;
}

function pages(head: number): List[] {
  const count = Math.ceil((head + 1) / WIDE);
  return Array.from({ length: count }, (_, page) => ({
    fromBlock: hex(page * WIDE),
    toBlock: hex(Math.min(head, (page + 1) * WIDE - 1)),
  }));
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

/** Without the second readings, which are halves of the first ones. */
function readOnce(lists: readonly List[]): List[] {
  const [from, to] = [(list: List) => Number(list.fromBlock), (list: List) => Number(list.toBlock)];
  const isHalf = (list: List): boolean =>
    lists.some(
      (whole) =>
        from(whole) <= from(list) &&
        to(list) <= to(whole) &&
        to(whole) - from(whole) > to(list) - from(list),
    );
  return lists.filter((list) => !isHalf(list));
}

async function scan(settings: ChainSettings, pool: Pool): Promise<ChildScan> {
  const args = ["--import", "tsx", CHILD, JSON.stringify(settings)];
  const url = pool.options.connectionString;
  if (url === undefined) throw new Error("the pool has no address");
  const options = { maxBuffer: CHILD_OUTPUT_MAX };
  const child = await promisify(execFile)(process.execPath, [...args, url], options);
  return JSON.parse(child.stdout) as ChildScan;
}

async function honest(world: ChainWorld, pool: Pool): Promise<Measured[]> {
  const { url } = world.anvil;
  const done = await scan(world.settings({ rpcUrls: [url] }), pool);
  if (done.failed !== null) throw new Error(done.failed);
  const lists = done.lists as readonly List[];
  const once = readOnce(lists);
  await raw(url, once);
  const head = (await world.chain.head()).number;
  const wide = pages(head).flatMap((range) =>
    transferFilters(world.settings()).map((filter) => ({ ...filter, ...range })),
  );
  const floors = {
    wide: await seconds(() => raw(url, wide)),
    once: await seconds(() => raw(url, once)),
    twice: await seconds(() => raw(url, lists)),
  };
  const perSecond = (time: number): string => `${(LOGS / time).toFixed(0)} logs/s`;
  const figure = perSecond(done.seconds);
  return [
    {
      name: `chain: ${String(LOGS)} logs read twice, proven, stored; floor: in pages of ${String(WIDE)}`,
      ...{ figure, floor: perSecond(floors.wide), ratio: done.seconds / floors.wide },
      aim: "within 2",
    },
    {
      name: "chain: the same; floor: each list that a scan asks for, once",
      ...{ figure, floor: perSecond(floors.once), ratio: done.seconds / floors.once },
      aim: "within 2",
    },
    {
      name: "chain: the same; floor: all lists that a scan asks for, twice the logs",
      ...{ figure, floor: perSecond(floors.twice), ratio: done.seconds / floors.twice },
      aim: "-",
    },
    {
      name: "chain: resident memory of a process that scans, at most",
      figure: `${done.residentMb.peak.toFixed(0)} MB`,
      floor: `${done.residentMb.before.toFixed(0)} MB before`,
      ...{ ratio: null, aim: "under 200 MB" },
    },
  ];
}

/** Transfers that viem's own reader finds behind the door. */
async function byViem(world: ChainWorld, head: number): Promise<number> {
  const client = createPublicClient({ transport: http(world.proxy.url, { retryCount: 3 }) });
  const event = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 v)");
  const [address, to] = [world.token.address, world.payee.address];
  let found = 0;
  for (let from = 0; from <= head; from += PAGE_BLOCKS) {
    const toBlock = BigInt(Math.min(head, from + PAGE_BLOCKS - 1));
    const range = { fromBlock: BigInt(from), toBlock };
    found += (await client.getLogs({ address, event, args: { to }, ...range })).length;
  }
  return found;
}

async function lying(world: ChainWorld, pool: Pool): Promise<Measured[]> {
  world.proxy.set({ emptyEvery: 2 });
  const viem = await byViem(world, (await world.chain.head()).number);
  world.proxy.set({ emptyEvery: 2 });
  const done = await scan(world.settings(), pool);
  const stored = await pool.query<{ stored: number }>(
    `select count(*)::integer as stored
       from tallyd.charge
      where status = 'succeeded'`,
  );
  return [
    {
      name: `chain: transfers of ${String(LOGS)} through a node whose every second list is empty`,
      figure: `${String(stored.rows[0]?.stored ?? 0)} by tallyd`,
      floor: `${String(viem)} by viem`,
      ...{ ratio: null, aim: `all, and said: ${done.failed ?? "nothing"}` },
    },
  ];
}

/** The bench. */
export async function benchChain(bench: BenchWorld): Promise<readonly Measured[]> {
  const world = await openChainWorld();
  const pools: Pool[] = [];
  const database = async (name: string): Promise<Pool> => {
    const pool = await freshDatabase(bench.serverUrl, name);
    pools.push(pool);
    return pool;
  };
  try {
    bench.say(`filling a chain with ${String(LOGS)} transfers`);
    await fill(world);
    const lines = await honest(world, await database("bench_chain"));
    bench.say("the same through a lying node");
    return [...lines, ...(await lying(world, await database("bench_chain_lies")))];
  } finally {
    for (const pool of pools) await pool.end();
    await world.close();
  }
}
