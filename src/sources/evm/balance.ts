/**
 * An independent proof of completeness: what came in less what went out, by the logs that were
 * read,
 * must be the difference of two balances that the contract tells. A node that drops logs does not
 * change them (case B38).
 */
import type { Pool } from "pg";
import { decodeFunctionResult, encodeFunctionData, parseAbi } from "viem";

import type { ChainSettings } from "../../core/settings.ts";
import {
  dropBalances,
  listBalances,
  movedBetween,
  saveBalance,
  saveBase,
} from "../../store/evm-balances.ts";
import type { Endpoint } from "./endpoints.ts";
import { faultOf } from "./endpoints.ts";
import type { RpcCall } from "./rpc.ts";
import { valueOf } from "./rpc.ts";
import { RpcError } from "./rpc-errors.ts";
import { watched } from "./topics.ts";
import { toHex } from "./wire.ts";

const ABI = parseAbi([
  "function balanceOf(address owner) view returns (uint256)",
  "function decimals() view returns (uint8)",
]);

type Hex = `0x${string}`;

// One request asks for so many balances.
const CALLS_MAX = 100;

interface Held {
  readonly token: string;
  readonly address: string;
}

/** The watched addresses and the tokens whose balances are compared. */
function holdings(chain: ChainSettings): Held[] {
  return chain.tokens.flatMap((token) =>
    watched(chain).map((address) => ({ token: token.address, address })),
  );
}

function balanceCall(held: Held, block: number): RpcCall {
  const args = [held.address as Hex] as const;
  const data = encodeFunctionData({ abi: ABI, functionName: "balanceOf", args });
  return { method: "eth_call", params: [{ to: held.token, data }, toHex(block)] };
}

/** Balances at a block. Throws RpcError; a pruned node says so in its own words. */
async function balancesAt(
  endpoint: Endpoint,
  list: readonly Held[],
  block: number,
): Promise<bigint[]> {
  const found: bigint[] = [];
  for (let at = 0; at < list.length; at += CALLS_MAX) {
    const part = list.slice(at, at + CALLS_MAX);
    const answers = await endpoint.rpc.batch(part.map((held) => balanceCall(held, block)));
    for (const answer of answers) {
      const data = valueOf(answer);
      if (typeof data !== "string" || !/^0x[0-9a-f]{64}$/i.test(data)) {
        throw new RpcError("broken", "a balance is no number: is there a token contract?");
      }
      found.push(decodeFunctionResult({ abi: ABI, functionName: "balanceOf", data: data as Hex }));
    }
  }
  return found;
}

/** An address whose balance is not what its transfers explain. */
export interface Unbalanced extends Held {
  readonly expected: bigint;
  readonly actual: bigint;
  /** The last block at which it agreed. */
  readonly since: number;
}

/**
 * Compares the balances at the final block. Where nothing is known of an address yet, its balance
 * right before the first block that is read is where counting starts; a node without that state
 * gives the one at the final block, and the proof begins there.
 */
export async function checkBalances(
  pool: Pool,
  chain: ChainSettings,
  work: {
    readonly endpoint: Endpoint;
    readonly fromBlock: number;
    readonly block: number;
    readonly now: Date;
  },
): Promise<Unbalanced[]> {
  const scope = chain.chainId;
  const { endpoint, fromBlock, block, now } = work;
  const all = holdings(chain);
  await dropBalances(pool, { scope, keep: all });
  await startCounting(pool, chain, work);
  const rows = await listBalances(pool, scope);
  const actual = await balancesAt(endpoint, rows, block);
  const wrong: Unbalanced[] = [];
  for (const [index, row] of rows.entries()) {
    const { token, address, baseBlock, baseBalance } = row;
    if (baseBlock > block || baseBlock + 1 < fromBlock) continue;
    const moved = await movedBetween(pool, { scope, token, address, after: baseBlock, to: block });
    const expected = baseBalance + moved;
    const seen = actual[index] ?? 0n;
    await saveBalance(pool, { scope, token, address, block, expected, actual: seen, at: now });
    if (expected === seen) continue;
    wrong.push({ token, address, expected, actual: seen, since: baseBlock });
  }
  return wrong;
}

async function startCounting(
  pool: Pool,
  chain: ChainSettings,
  work: { readonly endpoint: Endpoint; readonly fromBlock: number; readonly block: number },
): Promise<void> {
  const scope = chain.chainId;
  const known = new Set(
    (await listBalances(pool, scope)).map((row) => `${row.token} ${row.address}`),
  );
  const fresh = holdings(chain).filter((held) => !known.has(`${held.token} ${held.address}`));
  if (fresh.length === 0) return;
  const before = work.fromBlock - 1;
  // Before block 0 nobody had anything.
  const base =
    before < 0
      ? { block: -1, balances: fresh.map(() => 0n) }
      : await stateAt(work.endpoint, fresh, before, work.block);
  for (const [index, held] of fresh.entries()) {
    const balance = base.balances[index] ?? 0n;
    await saveBase(pool, { scope, ...held, block: base.block, balance });
  }
}

async function stateAt(
  endpoint: Endpoint,
  list: readonly Held[],
  wanted: number,
  instead: number,
): Promise<{ readonly block: number; readonly balances: bigint[] }> {
  try {
    return { block: wanted, balances: await balancesAt(endpoint, list, wanted) };
  } catch (error) {
    const { fault } = faultOf(error);
    if (fault === "rate_limit" || fault === "unreachable") throw error;
    return { block: instead, balances: await balancesAt(endpoint, list, instead) };
  }
}

/** What is wrong with the configured tokens on this chain; empty: nothing. */
export async function tokenFaults(
  chain: ChainSettings,
  endpoint: Endpoint,
  block: number,
): Promise<string[]> {
  const data = encodeFunctionData({ abi: ABI, functionName: "decimals" });
  const at = toHex(block);
  const answers = await endpoint.rpc.batch(
    chain.tokens.flatMap((token) => [
      { method: "eth_getCode", params: [token.address, at] },
      { method: "eth_call", params: [{ to: token.address, data }, at] },
    ]),
  );
  return chain.tokens.flatMap((token, index) => {
    const name = `${token.symbol} (${token.address})`;
    const code = valueOf(answers[2 * index]);
    if (code === "0x" || typeof code !== "string") return [`${name} has no contract there`];
    if (token.decimals === null) return [];
    const answer = answers[2 * index + 1];
    const value = answer?.ok === true ? answer.value : null;
    const decimals =
      typeof value === "string" && /^0x[0-9a-f]{64}$/i.test(value) ? Number(value) : null;
    if (decimals === token.decimals) return [];
    return [
      `${name} has ${decimals === null ? "no" : String(decimals)} decimals, ` +
        `${String(token.decimals)} are configured`,
    ];
  });
}
