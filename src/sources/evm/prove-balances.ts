/** When a balance disagrees, the range is read block by block from receipts, once. */
import type { Pool } from "pg";

import type { Clock } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import { listBalances } from "../../store/evm-balances.ts";
import { checkBalances } from "./balance.ts";
import type { Unbalanced } from "./balance.ts";
import { readThoroughly } from "./confirm-range.ts";
import type { Endpoint } from "./endpoints.ts";
import { faultOf } from "./endpoints.ts";
import { storeFound } from "./store-range.ts";

// Blocks that one pass reads one by one: some fifty requests for heads, and the receipts of few.
const BLOCKS_MAX = 20_000;
const PIECE = 1_000;

/** What is still wrong afterwards. */
export async function proveBalances(
  deps: { readonly pool: Pool; readonly clock: Clock },
  work: {
    readonly chain: ChainSettings;
    readonly check: {
      readonly endpoint: Endpoint;
      readonly fromBlock: number;
      readonly block: number;
      readonly now: Date;
    };
    readonly wrong: readonly Unbalanced[];
    readonly signal: AbortSignal;
  },
): Promise<{ readonly wrong: readonly Unbalanced[]; readonly charges: number }> {
  const { chain, check, signal } = work;
  const bases = await listBalances(deps.pool, chain.chainId);
  const since = Math.min(...bases.map((row) => row.baseBlock + 1), check.block);
  const first = Math.max(since, check.fromBlock, check.block - BLOCKS_MAX + 1);
  let charges = 0;
  try {
    for (let from = first; from <= check.block; from += PIECE) {
      const to = Math.min(check.block, from + PIECE - 1);
      const read = await readThoroughly(chain, check.endpoint, { from, to }, signal);
      charges += await storeFound(deps.pool, chain, { ...read, final: true }, deps.clock.now());
    }
  } catch (error) {
    signal.throwIfAborted();
    // The disagreement stays as it is and is told.
    faultOf(error);
    return { wrong: work.wrong, charges };
  }
  const now = deps.clock.now();
  return { wrong: await checkBalances(deps.pool, chain, { ...check, now }), charges };
}
