/** Logs of a range of blocks from one endpoint. */
import type { ChainSettings } from "../../core/settings.ts";
import type { Endpoint } from "./endpoints.ts";
import { grow, shrink } from "./endpoints.ts";
import { inOrder } from "./log-order.ts";
import { valueOf } from "./rpc.ts";
import type { RpcCall } from "./rpc.ts";
import { RpcError } from "./rpc-errors.ts";
import { TRANSFER, addressOf, authorizationFilters, takes, transferFilters } from "./topics.ts";
import type { LogFilter } from "./topics.ts";
import { readHeader, readLogs, readReceipt, toHex } from "./wire.ts";
import type { Header, RawLog } from "./wire.ts";

/** Blocks, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** What one endpoint says about a range. */
export interface RangeReading {
  /** The last block, as the node that answered has it. */
  readonly last: Header;
  readonly logs: readonly RawLog[];
}

/** How a range is read. */
export interface ReadOptions {
  /** The calls in the other order and in two halves, so that a regular fault cannot repeat. */
  readonly otherwise?: boolean;
  readonly signal?: AbortSignal;
}

/** The head of a block by its number. */
export function headerCall(block: number | string): RpcCall {
  const name = typeof block === "number" ? toHex(block) : block;
  return { method: "eth_getBlockByNumber", params: [name, false] };
}

function logsCall(filter: LogFilter, range: BlockRange): RpcCall {
  const { from, to } = range;
  return {
    method: "eth_getLogs",
    params: [{ ...filter, fromBlock: toHex(from), toBlock: toHex(to) }],
  };
}

/**
 * Reads a range, in as many pieces as the endpoint wants. Throws RpcError; `lagging` when the node
 * that answered does not have the last block, since its list would be cut without a word (case
 * B38).
 */
export async function readRange(
  endpoint: Endpoint,
  chain: ChainSettings,
  range: BlockRange,
  options: ReadOptions = {},
): Promise<RangeReading> {
  try {
    return await readPieces(endpoint, chain, range, options);
  } catch (error) {
    if (error instanceof RpcError) error.endpoint = endpoint.name;
    throw error;
  }
}

async function readPieces(
  endpoint: Endpoint,
  chain: ChainSettings,
  range: BlockRange,
  options: ReadOptions,
): Promise<RangeReading> {
  const logs: RawLog[] = [];
  let last: Header | undefined;
  let from = range.from;
  let size = options.otherwise === true ? halfOf(range) : range.to - range.from + 1;
  while (from <= range.to) {
    options.signal?.throwIfAborted();
    const piece = { from, to: Math.min(range.to, from + Math.min(size, endpoint.rangeBlocks) - 1) };
    try {
      const reading = await readPiece(endpoint, chain, piece, options);
      for (const log of reading.logs) logs.push(log);
      ({ last } = reading);
      from = piece.to + 1;
      grow(endpoint);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      const asked = piece.to - piece.from + 1;
      // Some gateways answer a range that is too wide like an outage: the next pass asks for less.
      if (error.fault === "unreachable" && asked > 1) shrink(endpoint, asked, error);
      if (error.fault !== "too_large") throw error;
      if (asked > 1) {
        shrink(endpoint, asked, error);
        size = Math.max(1, Math.floor(asked / 2));
        continue;
      }
      // One block alone is refused: its receipts hold the same logs.
      const reading = await readByReceipts(endpoint, chain, piece.from, options.signal);
      for (const log of reading.logs) logs.push(log);
      ({ last } = reading);
      from = piece.to + 1;
    }
  }
  if (last === undefined) throw new RpcError("broken", "a range without blocks was asked for");
  return { last, logs };
}

function halfOf(range: BlockRange): number {
  return Math.max(1, Math.ceil((range.to - range.from + 1) / 2));
}

async function readPiece(
  endpoint: Endpoint,
  chain: ChainSettings,
  range: BlockRange,
  options: ReadOptions,
): Promise<RangeReading> {
  const filters = transferFilters(chain);
  const first = await askLogs(endpoint, filters, range, options);
  const senders = strangers(first.logs, chain);
  if (senders.length === 0) return first;
  // The authorization beside a transfer to a payee is its payer's, whom nobody watches.
  const more = await askLogs(endpoint, authorizationFilters(chain, senders), range, options);
  if (more.last.hash !== first.last.hash) {
    throw new RpcError("lagging", `two versions of block ${String(range.to)}`);
  }
  return { last: first.last, logs: inOrder([...first.logs, ...more.logs]) };
}

/** Logs of some filters with the last block, in one request. Throws RpcError. */
export async function askLogs(
  endpoint: Endpoint,
  filters: readonly LogFilter[],
  range: BlockRange,
  { otherwise = false, signal }: ReadOptions,
): Promise<RangeReading> {
  const asked = otherwise ? filters.toReversed() : filters;
  const calls = [headerCall(range.to), ...asked.map((filter) => logsCall(filter, range))];
  const answers = await endpoint.rpc.batch(calls, signal);
  const last = readHeader(valueOf(answers[0]));
  if (last === null) {
    throw new RpcError("lagging", `block ${String(range.to)} is not there yet`);
  }
  const logs = answers.slice(1).flatMap((answer) => readLogs(valueOf(answer)));
  const stray = logs.find((log) => log.blockNumber < range.from || log.blockNumber > range.to);
  if (stray !== undefined) {
    throw new RpcError("broken", `a log of block ${String(stray.blockNumber)} was not asked for`);
  }
  return { last, logs: inOrder(logs) };
}

/** Senders of transfers to payees that are no payers of ours. */
function strangers(logs: readonly RawLog[], chain: ChainSettings): string[] {
  const senders = new Set<string>();
  for (const { topics } of logs) {
    const [event, from, to] = topics;
    if (event !== TRANSFER || from === undefined || to === undefined) continue;
    const sender = addressOf(from);
    if (senders.has(sender)) continue;
    if (!chain.payers.includes(sender) && chain.payees.includes(addressOf(to))) senders.add(sender);
  }
  return [...senders].toSorted();
}

/** Logs of one block out of its receipts, which have no limit of results. */
export async function readByReceipts(
  endpoint: Endpoint,
  chain: ChainSettings,
  block: number,
  signal?: AbortSignal,
): Promise<RangeReading> {
  const [head, receipts] = await endpoint.rpc.batch(
    [headerCall(block), { method: "eth_getBlockReceipts", params: [toHex(block)] }],
    signal,
  );
  const last = readHeader(valueOf(head));
  if (last === null) throw new RpcError("lagging", `block ${String(block)} is not there yet`);
  const list = valueOf(receipts);
  if (!Array.isArray(list)) throw new RpcError("broken", "receipts of a block are no list");
  const logs = (list as unknown[]).flatMap((one) => readReceipt(one)?.logs ?? []);
  return { last, logs: ofFilters(inOrder(logs), chain) };
}

/** Logs that a scan would have asked for, out of whole receipts. */
export function ofFilters(logs: readonly RawLog[], chain: ChainSettings): RawLog[] {
  const first = transferFilters(chain);
  const all = [...first, ...authorizationFilters(chain, strangers(logs, chain))];
  return logs.filter((log) => all.some((filter) => takes(filter, log)));
}

// Headers are small; so many are a fraction of a megabyte.
const HEADERS_MAX = 100;

/** Heads of blocks, by number. Throws `lagging` for one that the node does not have. */
export async function readHeaders(
  endpoint: Endpoint,
  numbers: readonly number[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, Header>> {
  const found = new Map<number, Header>();
  for (let at = 0; at < numbers.length; at += HEADERS_MAX) {
    const part = numbers.slice(at, at + HEADERS_MAX);
    const answers = await endpoint.rpc.batch(part.map(headerCall), signal);
    for (const [index, number] of part.entries()) {
      const header = readHeader(valueOf(answers[index]));
      if (header === null) {
        throw new RpcError("lagging", `block ${String(number)} is not there yet`);
      }
      found.set(number, header);
    }
  }
  return found;
}
