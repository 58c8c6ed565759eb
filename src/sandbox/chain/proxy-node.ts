/** One call of JSON-RPC as the node behind a door answers it, with the door's faults. */
import type { ProxyFaults } from "./proxy-faults.ts";
import { rangeRefusal, resultsRefusal } from "./vendor-errors.ts";
import type { Refusal } from "./vendor-errors.ts";

/** A call. */
export interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An answer. `status` is HTTP's when the whole request is refused with it. */
export interface Reply {
  readonly jsonrpc: "2.0";
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
  readonly status?: number;
}

/** What one call is answered with. */
export interface Node {
  readonly target: string;
  readonly faults: ProxyFaults;
  /** Is this answer to be an empty list? Counted. */
  readonly liesNow: () => boolean;
}

type Wire = Record<string, unknown>;

// Which parameter names the block.
const STATE_CALLS: Readonly<Record<string, number>> = {
  eth_call: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
};
// Answers that say in which block they are.
const PLACED: readonly string[] = [
  "eth_getBlockByHash",
  "eth_getBlockReceipts",
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
];
const RECEIPTS: readonly string[] = ["eth_getTransactionReceipt", "eth_getBlockReceipts"];

/** Answers a call. */
export async function replyTo(node: Node, call: Call): Promise<Reply> {
  const { faults } = node;
  const { method } = call;
  if (method === "eth_chainId" && faults.chainId !== undefined) {
    return answer(call, hex(faults.chainId));
  }
  if (method === "net_version" && faults.chainId !== undefined) {
    return answer(call, String(faults.chainId));
  }
  if (RECEIPTS.includes(method) && faults.blind === true) return answer(call, null);
  if (method === "eth_blockNumber") {
    return answer(call, hex((await headOf(node)).seen + (faults.ahead ?? 0)));
  }
  if (method === "eth_getBlockByNumber") return blockReply(node, call);
  if (method === "eth_getLogs" && node.faults.noLogs === true) {
    return refuse(call, -32001, "access denied: eth_getLogs is not allowed for this key");
  }
  if (method === "eth_getLogs") return logsReply(node, call);
  if (!isBehind(faults)) return forward(node, call);
  const place = STATE_CALLS[method];
  if (place !== undefined) return stateReply(node, call, place);
  return PLACED.includes(method) ? placedReply(node, call) : forward(node, call);
}

/** A refusal as an answer to a call. */
export function refused(id: unknown, { code, message, data, status }: Refusal): Reply {
  const error = { code, message, ...(data === undefined ? {} : { data }) };
  return { jsonrpc: "2.0", id, error, ...(status === 200 ? {} : { status }) };
}

function refuse(call: Call, code: number, message: string): Reply {
  return refused(call.id, { status: 200, code, message });
}

function answer(call: Call, result: unknown): Reply {
  return { jsonrpc: "2.0", id: call.id, result };
}

async function forward(node: Node, call: Call): Promise<Reply> {
  const { id, method, params } = call;
  const response = await fetch(node.target, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  });
  return (await response.json()) as Reply;
}

async function ask(node: Node, method: string, ...params: unknown[]): Promise<unknown> {
  return (await forward(node, { id: 1, method, params })).result;
}

function isBehind(faults: ProxyFaults): boolean {
  return (faults.lag ?? 0) > 0 || faults.frozenAt !== undefined;
}

/** Where the chain ends, and where the node thinks that it does. */
async function headOf(node: Node): Promise<{ readonly real: number; readonly seen: number }> {
  const real = Number(await ask(node, "eth_blockNumber"));
  const { lag, frozenAt } = node.faults;
  const seen = Math.max(0, Math.min(real - (lag ?? 0), frozenAt ?? real));
  return { real, seen };
}

/** The number that a tag means for a node that is behind; `null`: no tag. */
async function tagNumber(node: Node, tag: unknown): Promise<number | null> {
  if (tag === undefined || tag === "latest" || tag === "pending") return (await headOf(node)).seen;
  if (tag !== "safe" && tag !== "finalized") return null;
  const { real, seen } = await headOf(node);
  const block = (await ask(node, "eth_getBlockByNumber", tag, false)) as Wire | null;
  return Math.max(0, Number(block?.["number"] ?? 0) - (real - seen));
}

async function blockReply(node: Node, call: Call): Promise<Reply> {
  const { tags, genesis, ahead } = node.faults;
  const [name, full] = call.params;
  if (typeof name === "string" && tags?.includes(name) === true) {
    return refuse(call, -32602, `invalid block tag "${name}"`);
  }
  let asked = name;
  if (isBehind(node.faults)) {
    const number = await tagNumber(node, name);
    if (number !== null) asked = hex(number);
    if (Number(asked) > (await headOf(node)).seen) return answer(call, null);
  }
  const reply = await forward(node, { ...call, params: [asked, full ?? false] });
  const block = reply.result as Wire | null | undefined;
  if (block === null || block === undefined) return reply;
  const number = Number(block["number"]);
  if (number === 0 && genesis !== undefined) return answer(call, { ...block, hash: genesis });
  const lies = ahead !== undefined && (name === "latest" || name === undefined);
  return lies ? answer(call, { ...block, number: hex(number + ahead) }) : reply;
}

/** State of a block that the node does not have is an error, as with geth. */
async function stateReply(node: Node, call: Call, place: number): Promise<Reply> {
  const at = call.params[place];
  const number = (await tagNumber(node, at)) ?? (await numberOf(node, at));
  if (number === null || number > (await headOf(node)).seen) {
    return refuse(call, -32000, "header not found");
  }
  const params = [...call.params];
  params[place] = hex(number);
  return forward(node, { ...call, params });
}

/** The number of a block that is given by number or hash; `null`: there is none. */
async function numberOf(node: Node, at: unknown): Promise<number | null> {
  if (typeof at === "string") return at === "earliest" ? 0 : Number(at);
  if (typeof at !== "object" || at === null) return null;
  if ("blockNumber" in at) return Number(at.blockNumber);
  const hash = "blockHash" in at ? at.blockHash : null;
  const block = (await ask(node, "eth_getBlockByHash", hash, false)) as Wire | null;
  return block === null ? null : Number(block["number"]);
}

async function placedReply(node: Node, call: Call): Promise<Reply> {
  const reply = await forward(node, call);
  const found = (Array.isArray(reply.result) ? reply.result[0] : reply.result) as Wire | null;
  const number = found?.["number"] ?? found?.["blockNumber"];
  if (typeof number !== "string") return reply;
  return Number(number) > (await headOf(node)).seen ? answer(call, null) : reply;
}

async function logsReply(node: Node, call: Call): Promise<Reply> {
  const { range, results, refuse: never } = node.faults;
  const lies = node.liesNow();
  const [filter] = call.params as [{ fromBlock?: string; toBlock?: string; blockHash?: string }];
  const head = await headOf(node);
  const at = { blockHash: filter.blockHash };
  const alone = filter.blockHash === undefined ? null : await numberOf(node, at);
  if (filter.blockHash !== undefined && (alone === null || alone > head.seen)) {
    return refuse(call, -32000, "unknown block");
  }
  const from = alone ?? (await tagNumber(node, filter.fromBlock)) ?? Number(filter.fromBlock);
  const to = alone ?? (await tagNumber(node, filter.toBlock)) ?? Number(filter.toBlock);
  if (range !== undefined && to - from + 1 > range.blocks) {
    return refused(call.id, rangeRefusal({ from, to }, range));
  }
  if (never !== undefined && from <= never && never <= to) {
    return refuse(call, -32005, "query timeout exceeded");
  }
  // anvil refuses a list that begins above its head; most nodes answer that it is empty.
  if (alone === null && from > head.seen) return answer(call, []);
  const reply = await forward(node, call);
  if (!Array.isArray(reply.result)) return reply;
  const logs = (reply.result as Wire[]).filter((log) => Number(log["blockNumber"]) <= head.seen);
  const most = typeof results === "number" ? { max: results, vendor: "reth" as const } : results;
  if (most !== undefined && logs.length > most.max) {
    return refused(call.id, resultsRefusal({ from, to }, most));
  }
  return answer(call, lies ? [] : falsified(logs, node.faults));
}

const NO_HASH = `0x${"0".repeat(64)}`;

function falsified(logs: readonly Wire[], faults: ProxyFaults): readonly Wire[] {
  const { dropTransaction } = faults;
  let list = logs.filter((log) => log["transactionHash"] !== dropTransaction);
  if (faults.drop === true) list = list.slice(1);
  const [first, second, ...others] = list;
  if (first === undefined) return list;
  if (faults.altered === true) list = altered(list);
  if (faults.doubled === true && second !== undefined) {
    const { blockNumber, blockHash, logIndex } = first;
    list = [first, { ...second, blockNumber, blockHash, logIndex }, ...others];
  }
  if (faults.repeated === true) list = [first, ...list];
  if (faults.removed === true) list = [{ ...first, removed: true }, ...list.slice(1)];
  if (faults.unmined === true) {
    list = [{ ...first, blockNumber: null, blockHash: NO_HASH, logIndex: "0xfff" }, ...list];
  }
  return list;
}

/** The first amount of a list is one unit more. */
function altered(list: readonly Wire[]): Wire[] {
  const at = list.findIndex((log) => typeof log["data"] === "string" && log["data"].length === 66);
  return list.map((log, index) => {
    if (index !== at) return log;
    const data = (BigInt(String(log["data"])) + 1n).toString(16).padStart(64, "0");
    return { ...log, data: `0x${data}` };
  });
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
