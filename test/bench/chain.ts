/**
 * A scan of a filled chain, with all that makes it complete (two readings, block heads, balances,
 * stored in PostgreSQL), against raw `eth_getLogs` of the same ranges without decoding.
 */
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { encode } from "../../src/sandbox/chain/local-chain.ts";
import { openChains } from "../../src/sources/evm/open-chains.ts";
import { scanChain } from "../../src/sources/evm/scan.ts";
import { transferFilters } from "../../src/sources/evm/topics.ts";
import { openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import type { BenchWorld, Measured } from "./bench.ts";
import { freshDatabase, seconds } from "./database.ts";

const LOGS = 40_000;
// Transfers of one transaction; a block of the local chain holds this much gas.
const PER_BLOCK = 200;
const RANGE = 2_000;

async function fill(world: ChainWorld): Promise<void> {
  const { chain, token, payee } = world;
  const batcher = await chain.deployBatcher();
  await chain.mint(token, batcher, BigInt(LOGS));
  const data = encode("pay", [token.address, payee.address, 1n, BigInt(PER_BLOCK)]);
  for (let left = LOGS; left > 0; left -= PER_BLOCK) await chain.send(batcher, data);
  await chain.mine(10);
}

async function raw(world: ChainWorld): Promise<number> {
  const chain = world.settings({ rpcUrls: [world.anvil.url] });
  const head = (await world.chain.head()).number;
  let bytes = 0;
  for (let from = 0; from <= head; from += RANGE) {
    for (const filter of transferFilters(chain)) {
      const range = { fromBlock: hex(from), toBlock: hex(Math.min(head, from + RANGE - 1)) };
      const response = await fetch(world.anvil.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          ...{ jsonrpc: "2.0", id: 1, method: "eth_getLogs" },
          params: [{ ...filter, ...range }],
        }),
      });
      bytes += (await response.text()).length;
    }
  }
  return bytes;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

/** The bench. */
export async function benchChain(bench: BenchWorld): Promise<readonly Measured[]> {
  const world = await openChainWorld();
  const pool = await freshDatabase(bench.serverUrl, "bench_chain");
  try {
    bench.say(`filling a chain with ${String(LOGS)} transfers`);
    await fill(world);
    await raw(world);
    const floor = await seconds(() => raw(world));
    const settings = world.settings({ rpcUrls: [world.anvil.url] });
    const reader = [...openChains([settings], () => undefined).values()][0];
    if (reader === undefined) throw new Error("no reader");
    const deps = { pool, clock: systemClock, log: silentLog, clockSlackMs: 300_000 };
    const { signal } = new AbortController();
    const figure = await seconds(async () => {
      const scanned = await scanChain(deps, reader, { signal });
      if (scanned.failed !== null) throw new Error(scanned.failed.message);
    });
    return [
      {
        name: `chain: ${String(LOGS)} logs read twice, proven, stored`,
        figure: `${(LOGS / figure).toFixed(0)} logs/s`,
        floor: `${(LOGS / floor).toFixed(0)} logs/s`,
        ratio: figure / floor,
        aim: "within 2",
      },
    ];
  } finally {
    await pool.end();
    await world.close();
  }
}
