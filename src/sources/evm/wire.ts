/** Blocks, logs and receipts as endpoints spell them, checked and turned into plain values. */
import { RpcError } from "./rpc-errors.ts";

/** A block's head. */
export interface Header {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  readonly time: Date;
  /** Of all its logs, 256 bytes. */
  readonly logsBloom: string;
}

/** A log in a block; never a pending or a removed one (case B39). */
export interface RawLog {
  /** Contract. */
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly txHash: string;
  readonly logIndex: number;
}

/** A receipt. */
export interface Receipt {
  readonly txHash: string;
  readonly succeeded: boolean;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logs: readonly RawLog[];
}

const HASH = /^0x[0-9a-f]{64}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;
const NO_HASH = `0x${"0".repeat(64)}`;

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function broken(what: string): RpcError {
  return new RpcError("broken", `${what} is not what the specification says`);
}

function hexOf(value: unknown, name: string, form: RegExp): string {
  const raw = field(value, name);
  const text = typeof raw === "string" ? raw.toLowerCase() : "";
  if (!form.test(text)) throw broken(name);
  return text;
}

function numberOf(value: unknown, name: string): number {
  const raw = field(value, name);
  const number = typeof raw === "string" && /^0x[0-9a-f]+$/i.test(raw) ? Number(raw) : NaN;
  if (!Number.isSafeInteger(number)) throw broken(name);
  return number;
}

/** A block's head; `null`: the node does not have the block. */
export function readHeader(value: unknown): Header | null {
  if (value === null || value === undefined) return null;
  const hash = hexOf(value, "hash", HASH);
  if (hash === NO_HASH) throw broken("the hash of a block");
  return {
    number: numberOf(value, "number"),
    hash,
    parentHash: hexOf(value, "parentHash", HASH),
    time: new Date(numberOf(value, "timestamp") * 1_000),
    logsBloom: hexOf(value, "logsBloom", /^0x[0-9a-f]*$/),
  };
}

/**
 * A list of logs. Pending and removed ones are left out: they are in no block (case B39). Two logs
 * at one place of one block are a fault of the node, and nothing of the answer counts (case B36).
 */
export function readLogs(value: unknown): RawLog[] {
  if (!Array.isArray(value)) throw broken("a list of logs");
  const places = new Map<string, string>();
  const logs: RawLog[] = [];
  for (const one of value as unknown[]) {
    const log = readLog(one);
    if (log === null) continue;
    const place = `${log.blockHash} ${String(log.logIndex)}`;
    const content = logKey(log) + log.topics.join("") + log.data;
    const known = places.get(place);
    if (known === content) continue;
    if (known !== undefined) {
      throw new RpcError(
        "broken",
        `two logs at index ${String(log.logIndex)} of block ${String(log.blockNumber)}`,
      );
    }
    places.set(place, content);
    logs.push(log);
  }
  return logs;
}

function readLog(value: unknown): RawLog | null {
  if (field(value, "removed") === true) return null;
  const blockHash = field(value, "blockHash");
  if (blockHash === null || blockHash === undefined || blockHash === NO_HASH) return null;
  const topics = field(value, "topics");
  const data = field(value, "data");
  if (!Array.isArray(topics) || typeof data !== "string") throw broken("a log");
  return {
    address: hexOf(value, "address", ADDRESS),
    topics: (topics as unknown[]).map((topic) => String(topic).toLowerCase()),
    data: data.toLowerCase(),
    blockNumber: numberOf(value, "blockNumber"),
    blockHash: hexOf(value, "blockHash", HASH),
    txHash: hexOf(value, "transactionHash", HASH),
    logIndex: numberOf(value, "logIndex"),
  };
}

/** The identity of a log in one version of the chain. */
export function logKey(log: RawLog): string {
  return `${log.blockHash}:${log.txHash}:${String(log.logIndex)}`;
}

/** A receipt; `null`: the transaction is in no block of the node. */
export function readReceipt(value: unknown): Receipt | null {
  if (value === null || value === undefined) return null;
  const blockHash = field(value, "blockHash");
  if (blockHash === null || blockHash === undefined) return null;
  return {
    txHash: hexOf(value, "transactionHash", HASH),
    succeeded: numberOf(value, "status") === 1,
    blockNumber: numberOf(value, "blockNumber"),
    blockHash: hexOf(value, "blockHash", HASH),
    logs: readLogs(field(value, "logs")),
  };
}

/** A number as parameters spell it. */
export function toHex(value: number): string {
  return `0x${value.toString(16)}`;
}
