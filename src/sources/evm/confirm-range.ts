/**
 * A range counts only when it was read twice: by two endpoints, else twice by the one there is. An
 * empty list is a valid answer of a node that lags or lies, so one answer proves nothing (case
 * B38).
 */
import type { ChainSettings } from "../../core/settings.ts";
import { mayHold } from "./bloom.ts";
import type { Endpoint } from "./endpoints.ts";
import { contentKey, sameLogs } from "./log-order.ts";
import { readByReceipts, readHeaders, readRange } from "./read-range.ts";
import type { BlockRange, RangeReading } from "./read-range.ts";
import { valueOf } from "./rpc.ts";
import { RpcError } from "./rpc-errors.ts";
import { transferFilters } from "./topics.ts";
import { readReceipt } from "./wire.ts";
import type { Header, RawLog } from "./wire.ts";

/** An endpoint that answered with less, or with more, than there is. */
export interface Liar {
  readonly endpoint: Endpoint;
  readonly seen: string;
}

/** What is proven about a range. */
export interface Confirmed {
  readonly last: Header;
  readonly logs: readonly RawLog[];
  /** Heads of the blocks that hold logs, and of the one before the range, by number. */
  readonly headers: ReadonlyMap<number, Header>;
  readonly liars: readonly Liar[];
}

// Two readings agree at once unless somebody lies; a liar that answers every second request is
// outvoted within a few more.
const READINGS_MAX = 8;
// Disputed logs whose receipts are asked for; a lie drops whole answers, so a sample shows it.
const RECEIPTS_MAX = 20;

/**
 * Reads a range until two readings are the same and nothing contradicts them. `first` and `second`
 * may be the same endpoint. Throws RpcError, `broken` with "disagree" when nobody can tell.
 */
export async function confirmRange(
  chain: ChainSettings,
  endpoints: { readonly first: Endpoint; readonly second: Endpoint },
  range: BlockRange,
  signal?: AbortSignal,
): Promise<Confirmed> {
  const { first, second } = endpoints;
  const options = signal === undefined ? {} : { signal };
  const [one, two] = await Promise.all([
    readRange(first, chain, range, options),
    readRange(second, chain, range, { ...options, otherwise: true }),
  ]);
  if (one.last.hash !== two.last.hash) {
    throw new RpcError(
      "broken",
      `${first.name} and ${second.name} disagree about the hash of block ${String(range.to)}`,
    );
  }
  const readings: Said[] = [
    { endpoint: first, reading: one },
    { endpoint: second, reading: two },
  ];
  const agreed = same(one, two) ? one : await settle(chain, { readings, range, options });
  const headers = await headersOf(first, { reading: agreed, range }, signal);
  return { last: agreed.last, logs: agreed.logs, headers, liars: liarsOf(readings, agreed, range) };
}

interface Said {
  readonly endpoint: Endpoint;
  readonly reading: RangeReading;
}

function keys(reading: RangeReading): Set<string> {
  return new Set(reading.logs.map(contentKey));
}

/** Word for word: a node that changes an amount is as wrong as one that leaves it out. */
function same(a: RangeReading, b: RangeReading): boolean {
  return sameLogs(a.logs, b.logs);
}

function holdsAll(larger: RangeReading, smaller: RangeReading): boolean {
  const known = keys(larger);
  return smaller.logs.every((log) => known.has(contentKey(log)));
}

/** Reads on until the fullest answer was given twice, holds every other, and its logs are real. */
async function settle(
  chain: ChainSettings,
  work: {
    readonly readings: Said[];
    readonly range: BlockRange;
    readonly options: { readonly signal?: AbortSignal };
  },
): Promise<RangeReading> {
  const { readings, range, options } = work;
  const sources = [...new Set(readings.map((one) => one.endpoint))];
  for (let turn = 0; readings.length < READINGS_MAX; turn += 1) {
    const full = fullest(readings);
    const twice = readings.filter((one) => same(one.reading, full)).length >= 2;
    const holds = readings.every((one) => holdsAll(full, one.reading));
    if (twice && holds && (await areReal(sources, readings, full))) return full;
    const endpoint = sources[turn % sources.length];
    if (endpoint === undefined) break;
    const otherwise = turn % 3 === 1;
    const reading = await readRange(endpoint, chain, range, { ...options, otherwise });
    readings.push({ endpoint, reading });
  }
  throw new RpcError(
    "broken",
    `${sources.map((one) => one.name).join(" and ")} disagree about the logs of blocks ` +
      `${String(range.from)} to ${String(range.to)}: ` +
      `${readings.map((one) => String(one.reading.logs.length)).join(", ")} were given`,
  );
}

function fullest(readings: readonly Said[]): RangeReading {
  const sorted = readings.toSorted((a, b) => b.reading.logs.length - a.reading.logs.length);
  const [most] = sorted;
  if (most === undefined) throw new RpcError("broken", "nothing was read");
  return most.reading;
}

/** Receipts of disputed logs, from every endpoint: one that has the receipt must have the log. */
async function areReal(
  sources: readonly Endpoint[],
  readings: readonly Said[],
  full: RangeReading,
): Promise<boolean> {
  const sets = readings.map((one) => keys(one.reading));
  const disputed = full.logs.filter((log) => sets.some((set) => !set.has(contentKey(log))));
  const sample = everyNth(disputed, RECEIPTS_MAX);
  let proven = 0;
  for (const log of sample) {
    for (const endpoint of sources) {
      const [answer] = await endpoint.rpc.batch([
        { method: "eth_getTransactionReceipt", params: [log.txHash] },
      ]);
      const receipt = readReceipt(valueOf(answer));
      if (receipt === null) continue;
      if (!receipt.logs.some((one) => contentKey(one) === contentKey(log))) return false;
      proven += 1;
      break;
    }
  }
  return proven === sample.length;
}

function everyNth<T>(list: readonly T[], most: number): T[] {
  const step = Math.max(1, Math.ceil(list.length / most));
  return list.filter((_, index) => index % step === 0);
}

function liarsOf(readings: readonly Said[], agreed: RangeReading, range: BlockRange): Liar[] {
  const blocks = `blocks ${String(range.from)} to ${String(range.to)}`;
  const liars = new Map<string, Liar>();
  for (const { endpoint, reading } of readings) {
    if (same(reading, agreed)) continue;
    const counts = `${String(reading.logs.length)} of ${String(agreed.logs.length)} logs`;
    liars.set(endpoint.name, { endpoint, seen: `gave ${counts} for ${blocks}` });
  }
  return [...liars.values()];
}

/**
 * The heads of the blocks that hold logs, and of the one before; each log must lie in the block
 * that its node shows.
 */
async function headersOf(
  endpoint: Endpoint,
  { reading, range }: { readonly reading: RangeReading; readonly range: BlockRange },
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, Header>> {
  const numbers = new Set(range.from > 0 ? [range.from - 1] : []);
  for (const log of reading.logs) numbers.add(log.blockNumber);
  const headers = await readHeaders(endpoint, [...numbers], signal);
  for (const log of reading.logs) {
    if (headers.get(log.blockNumber)?.hash === log.blockHash) continue;
    throw new RpcError("lagging", `block ${String(log.blockNumber)} changed while it was read`);
  }
  return headers;
}

/**
 * Reads a range block by block: what the bloom filter of a head does not rule out is read from the
 * receipts. Slow, and independent of `eth_getLogs`.
 */
export async function readThoroughly(
  chain: ChainSettings,
  endpoint: Endpoint,
  range: BlockRange,
  signal?: AbortSignal,
): Promise<Confirmed> {
  const numbers = Array.from({ length: range.to - range.from + 1 }, (_, n) => range.from + n);
  const heads = await readHeaders(endpoint, numbers, signal);
  const filters = transferFilters(chain);
  const logs: RawLog[] = [];
  const headers = new Map<number, Header>();
  for (const [number, head] of heads) {
    signal?.throwIfAborted();
    if (!mayHold(head.logsBloom, filters)) continue;
    const reading = await readByReceipts(endpoint, chain, number, signal);
    if (reading.last.hash !== head.hash) {
      throw new RpcError("lagging", `block ${String(number)} changed while it was read`);
    }
    headers.set(number, head);
    logs.push(...reading.logs);
  }
  const last = heads.get(range.to);
  if (last === undefined) throw new RpcError("broken", "a range without blocks was asked for");
  return { last, logs, headers, liars: [] };
}
