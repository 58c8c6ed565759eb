/** Blocks, logs and receipts as endpoints spell them, checked and turned into plain values. */
import { inOrder } from "./log-order.ts";
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
const BYTES = /^0x(?:[0-9a-f]{2})*$/;
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
  return hex(field(value, name), name, form);
}

function hex(raw: unknown, name: string, form: RegExp): string {
  if (typeof raw !== "string") throw broken(name);
  // Nearly all nodes write small letters: only others cost a copy.
  if (form.test(raw)) return raw;
  const text = raw.toLowerCase();
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
    logsBloom: hexOf(value, "logsBloom", BYTES),
  };
}

/**
 * A list of logs, in order. Pending and removed ones are left out: they are in no block (case B39).
 * Two logs at one place of one block are a fault of the node, and nothing of the answer counts
 * (case B36).
 */
export function readLogs(value: unknown): readonly RawLog[] {
  if (!Array.isArray(value)) throw broken("a list of logs");
  const logs: RawLog[] = [];
  for (const one of value as unknown[]) {
    const log = readLog(one);
    if (log !== null) logs.push(log);
  }
  return inOrder(logs);
}

function readLog(value: unknown): RawLog | null {
  if (field(value, "removed") === true) return null;
  const blockHash = field(value, "blockHash");
  if (blockHash === null || blockHash === undefined || blockHash === NO_HASH) return null;
  const topics = field(value, "topics");
  if (!Array.isArray(topics)) throw broken("a log");
  return {
    address: hexOf(value, "address", ADDRESS),
    topics: (topics as unknown[]).map((topic) => hex(topic, "a topic", HASH)),
    data: hexOf(value, "data", BYTES),
    blockNumber: numberOf(value, "blockNumber"),
    blockHash: hexOf(value, "blockHash", HASH),
    txHash: hexOf(value, "transactionHash", HASH),
    logIndex: numberOf(value, "logIndex"),
  };
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
