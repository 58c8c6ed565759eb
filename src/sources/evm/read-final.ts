/** Reads what has become final, range by range, at both ends of what was read before. */
import type { Pool } from "pg";

import type { Clock } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import type { ChainRow } from "../../store/evm-chain.ts";
import { confirmRange } from "./confirm-range.ts";
import type { Liar } from "./confirm-range.ts";
import type { Endpoint } from "./endpoints.ts";
import { readHeaders } from "./read-range.ts";
import type { BlockRange } from "./read-range.ts";
import { storeFinal } from "./store-range.ts";
import type { Header } from "./wire.ts";

/** How far a long scan is. */
export interface Progress {
  /** Blocks read, and to read. */
  readonly done: number;
  readonly total: number;
  readonly logs: number;
}

interface FinalWork {
  readonly chain: ChainSettings;
  readonly known: ChainRow;
  readonly pair: { readonly first: Endpoint; readonly second: Endpoint };
  readonly target: Header;
  /** First block to read. */
  readonly from: number;
  readonly counts: { blocks: number; logs: number; charges: number; gone: number };
  readonly options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (progress: Progress) => void;
  };
}

// One transaction stores one range; beyond this a busy token's range holds too many logs.
const RANGE_MAX = 50_000;

// Memory follows the logs of one range and not the history: a fuller range makes the next shorter.
const LOGS_MAX = 5_000;

/** Reads and stores all of it. Throws RpcError; what was stored stays. */
export async function readFinal(
  deps: { readonly pool: Pool; readonly clock: Clock },
  work: FinalWork,
): Promise<{ readonly liars: readonly Liar[] }> {
  const { known, target, from } = work;
  const liars = new Map<string, Liar>();
  const fresh = known.fromBlock === null || known.final === null;
  // Downwards first: an older row waits for it, and the newest end is read at every pass.
  const parts: BlockRange[] = [];
  if (!fresh && from < known.fromBlock) parts.push({ from, to: known.fromBlock - 1 });
  const next = fresh ? from : known.final.number + 1;
  if (next <= target.number) parts.push({ from: next, to: target.number });
  const total = parts.reduce((sum, part) => sum + part.to - part.from + 1, 0);
  let done = 0;
  for (const part of parts) {
    const advances = part.to === target.number;
    // Below, the ranges go from new to old, so that what is read is always one piece.
    for (const range of advances ? upwards(work, part) : downwards(work, part)) {
      work.options.signal.throwIfAborted();
      await readOne(deps, work, { range, advances, liars });
      done += range.to - range.from + 1;
      work.options.onProgress?.({ done, total, logs: work.counts.logs });
    }
  }
  return { liars: [...liars.values()] };
}

function* upwards(work: FinalWork, part: BlockRange): Generator<BlockRange> {
  let from = part.from;
  while (from <= part.to) {
    const to = Math.min(part.to, from + width(work) - 1);
    yield { from, to };
    from = to + 1;
  }
}

function* downwards(work: FinalWork, part: BlockRange): Generator<BlockRange> {
  let { to } = part;
  while (to >= part.from) {
    const from = Math.max(part.from, to - width(work) + 1);
    yield { from, to };
    to = from - 1;
  }
}

function width({ pair }: FinalWork): number {
  return Math.min(pair.first.rangeBlocks, pair.second.rangeBlocks, RANGE_MAX);
}

async function readOne(
  deps: { readonly pool: Pool; readonly clock: Clock },
  work: FinalWork,
  one: {
    readonly range: BlockRange;
    readonly advances: boolean;
    readonly liars: Map<string, Liar>;
  },
): Promise<void> {
  const { chain, pair, counts, options } = work;
  const { range, advances } = one;
  const read = await confirmRange(chain, pair, range, options.signal);
  for (const liar of read.liars) one.liars.set(liar.endpoint.name, liar);
  if (read.logs.length > LOGS_MAX) {
    const less = Math.max(1, Math.floor((range.to - range.from + 1) / 2));
    for (const endpoint of [pair.first, pair.second]) endpoint.rangeBlocks = less;
  }
  const before = Math.max(0, range.from - 1);
  const since = (await readHeaders(pair.first, [before], options.signal)).get(before);
  const stored = await storeFinal(
    deps.pool,
    chain,
    { ...read, from: range.from, since: since?.time ?? read.last.time, advances },
    deps.clock.now(),
  );
  counts.blocks += range.to - range.from + 1;
  counts.logs += stored.logs;
  counts.charges += stored.charges;
  counts.gone += stored.gone;
}
