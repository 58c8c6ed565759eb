/** Reads what has become final, range by range, at both ends of what was read before. */
import type { Pool } from "pg";

import type { Clock } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import type { ChainRow } from "../../store/evm-chain.ts";
import { confirmRange } from "./confirm-range.ts";
import type { Confirmed, Liar } from "./confirm-range.ts";
import type { Endpoint } from "./endpoints.ts";
import { rangeWidth } from "./range-width.ts";
import type { RangeWidth } from "./range-width.ts";
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

type Deps = { readonly pool: Pool; readonly clock: Clock };

/** A range to read, and whether the cursor moves with it. */
interface Step {
  readonly range: BlockRange;
  readonly advances: boolean;
}

/**
 * Reads and stores all of it; while one range is stored, the next one is read. Stored is only in
 * the order of reading, so that what is read is always one piece. Throws RpcError; what was stored
 * stays.
 */
export async function readFinal(
  deps: Deps,
  work: FinalWork,
): Promise<{ readonly liars: readonly Liar[] }> {
  const { chain, pair, options } = work;
  const liars = new Map<string, Liar>();
  const width = rangeWidth();
  const parts = partsOf(work);
  const total = parts.reduce((sum, { range }) => sum + blocksOf(range), 0);
  let done = 0;
  let storing = Promise.resolve();
  for (const step of stepsOf(work, parts, width)) {
    const reading = confirmRange(chain, pair, step.range, options.signal);
    const read = await bothEnds(reading, storing);
    // Here nothing is under way.
    options.signal.throwIfAborted();
    for (const liar of read.liars) liars.set(liar.endpoint.name, liar);
    const blocks = blocksOf(step.range);
    width.learn({ blocks, logs: read.logs.length });
    storing = store(deps, work, step, read).then(() => {
      done += blocks;
      options.onProgress?.({ done, total, logs: work.counts.logs });
    });
  }
  await storing;
  return { liars: [...liars.values()] };
}

/** Waits for both, also when one fails: no work goes on behind the back of whoever gave it. */
async function bothEnds<Value>(reading: Promise<Value>, storing: Promise<void>): Promise<Value> {
  const [read, stored] = await Promise.allSettled([reading, storing]);
  if (stored.status === "rejected") throw stored.reason;
  if (read.status === "rejected") throw read.reason;
  return read.value;
}

function blocksOf(range: BlockRange): number {
  return range.to - range.from + 1;
}

/** Downwards first: an older row waits for it, and the newest end is read at every pass. */
function partsOf({ known, target, from }: FinalWork): Step[] {
  const fresh = known.fromBlock === null || known.final === null;
  const parts: Step[] = [];
  if (!fresh && from < known.fromBlock) {
    parts.push({ range: { from, to: known.fromBlock - 1 }, advances: false });
  }
  const next = fresh ? from : known.final.number + 1;
  if (next <= target.number) {
    parts.push({ range: { from: next, to: target.number }, advances: true });
  }
  return parts;
}

/** Below, the ranges go from new to old, so that what is read is always one piece. */
function* stepsOf(work: FinalWork, parts: readonly Step[], width: RangeWidth): Generator<Step> {
  const { first, second } = work.pair;
  for (const { range, advances } of parts) {
    let { from, to } = range;
    while (from <= to) {
      const blocks = Math.min(first.rangeBlocks, second.rangeBlocks, width.blocks(), to - from + 1);
      const next = advances ? { from, to: from + blocks - 1 } : { from: to - blocks + 1, to };
      yield { range: next, advances };
      if (advances) from += blocks;
      else to -= blocks;
    }
  }
}

async function store(
  deps: Deps,
  { chain, counts }: FinalWork,
  { range, advances }: Step,
  read: Confirmed,
): Promise<void> {
  const since = read.headers.get(range.from - 1)?.time ?? read.last.time;
  const final = { ...read, from: range.from, since, advances };
  const stored = await storeFinal(deps.pool, chain, final, deps.clock.now());
  counts.blocks += blocksOf(range);
  counts.logs += stored.logs;
  counts.charges += stored.charges;
  counts.gone += stored.gone;
}
