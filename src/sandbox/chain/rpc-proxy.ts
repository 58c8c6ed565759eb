/**
 * A door between a reader and a chain that can be faulty on request, in the ways and words of real
 * nodes and vendors (cases B36, B38).
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";

/** The faults; all off at first. */
export interface ProxyFaults {
  /** Every n-th answer to `eth_getLogs` is an empty list. */
  readonly emptyEvery?: number;
  /** Every answer to `eth_getLogs` is an empty list. */
  readonly empty?: boolean;
  /** The node is these many blocks behind and knows nothing above. */
  readonly lag?: number;
  /** Answers about more blocks than this are refused, in a vendor's words. */
  readonly range?: { readonly blocks: number; readonly vendor: Vendor };
  /** Answers with more logs than this are refused, in words that suggest the same range again. */
  readonly results?: number;
  /** Ranges that touch this block are refused however small. */
  readonly refuse?: number;
  /** So many requests are answered with 429 first. */
  readonly busy?: number;
  readonly status?: number;
  readonly chainId?: number;
  readonly genesis?: string;
  /** Tags that it does not know. */
  readonly tags?: readonly string[];
  readonly batches?: boolean;
  /** One log of every list is missing. */
  readonly drop?: boolean;
  /** Two logs of a list have one index. */
  readonly doubled?: boolean;
  /** Receipts are hidden as well. */
  readonly blind?: boolean;
}

export type Vendor = "alchemy" | "infura" | "quicknode" | "public";

/** The door. */
export interface RpcProxy {
  readonly url: string;
  readonly set: (faults: ProxyFaults) => void;
  /** Methods that passed, with their parameters. */
  readonly journal: readonly { readonly method: string; readonly params: readonly unknown[] }[];
  /** HTTP requests. */
  readonly requests: () => number;
  readonly close: () => Promise<void>;
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

interface Reply {
  readonly jsonrpc: "2.0";
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Starts a door before a chain. */
export async function startRpcProxy(target: string): Promise<RpcProxy> {
  let faults: ProxyFaults = {};
  let requests = 0;
  let lists = 0;
  let busy = 0;
  const journal: { method: string; params: readonly unknown[] }[] = [];
  const door: Door = {
    target,
    faults: () => faults,
    nextList: () => (lists += 1),
    note: (call) => journal.push({ method: call.method, params: call.params }),
  };
  const server = createServer((request, response) => {
    requests += 1;
    void (async () => {
      const body = await textOf(request);
      if (busy > 0) {
        busy -= 1;
        send(response, 429, '{"error":"Too Many Requests"}', { "retry-after": "1" });
        return;
      }
      if (faults.status !== undefined) {
        send(response, faults.status, "no backend is currently healthy to serve traffic");
        return;
      }
      await answer(door, body, response);
    })().catch(() => {
      send(response, 502, "bad gateway");
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    set: (next) => {
      faults = next;
      busy = next.busy ?? 0;
      lists = 0;
    },
    journal,
    requests: () => requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  };
}

interface Door {
  readonly target: string;
  readonly faults: () => ProxyFaults;
  readonly nextList: () => number;
  readonly note: (call: Call) => void;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

async function answer(door: Door, body: string, response: ServerResponse): Promise<void> {
  const parsed = JSON.parse(body) as Call | Call[];
  if (Array.isArray(parsed) && door.faults().batches === false) {
    send(response, 200, JSON.stringify(refusal(null, -32600, "batch requests are not supported")));
    return;
  }
  const calls = Array.isArray(parsed) ? parsed : [parsed];
  const replies: Reply[] = [];
  for (const call of calls) {
    door.note(call);
    const reply = await replyTo(door, call);
    if (typeof reply === "number") {
      const message = "eth_getLogs is limited to a 10,000 range";
      send(response, reply, JSON.stringify(refusal(call.id, -32614, message)));
      return;
    }
    replies.push(reply);
  }
  send(response, 200, JSON.stringify(Array.isArray(parsed) ? replies : replies[0]));
}

function refusal(id: unknown, code: number, message: string): Reply {
  return { jsonrpc: "2.0", id, error: { code, message } };
}

async function forward(door: Door, call: Call): Promise<Reply> {
  const response = await fetch(door.target, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: call.id, method: call.method, params: call.params }),
  });
  return (await response.json()) as Reply;
}

/** A number stands for a status of HTTP. */
async function replyTo(door: Door, call: Call): Promise<Reply | number> {
  const faults = door.faults();
  if (call.method === "eth_chainId" && faults.chainId !== undefined) {
    return { jsonrpc: "2.0", id: call.id, result: hex(faults.chainId) };
  }
  if (call.method === "eth_getBlockByNumber") return blockReply(door, call);
  if (call.method === "eth_getLogs") return logsReply(door, call);
  const hidden = ["eth_getTransactionReceipt", "eth_getBlockReceipts"].includes(call.method);
  if (hidden && faults.blind === true) return { jsonrpc: "2.0", id: call.id, result: null };
  return forward(door, call);
}

async function headOf(door: Door): Promise<number> {
  const reply = await forward(door, { id: 1, method: "eth_blockNumber", params: [] });
  return Math.max(0, Number(reply.result) - (door.faults().lag ?? 0));
}

async function blockReply(door: Door, call: Call): Promise<Reply> {
  const { tags, lag, genesis } = door.faults();
  const [name] = call.params;
  if (typeof name === "string" && tags?.includes(name) === true) {
    return refusal(call.id, -32602, `invalid block tag "${name}"`);
  }
  const later = lag ?? 0;
  if (later > 0 && name === "latest") {
    const params = [hex(await headOf(door)), false];
    return forward(door, { ...call, params });
  }
  const reply = await forward(door, call);
  const block = reply.result as Record<string, unknown> | null;
  if (block === null) return reply;
  const number = Number(block["number"]);
  if (later > 0 && number > (await headOf(door))) {
    if (!String(name).startsWith("0x")) {
      const params = [hex(Math.max(0, number - later)), false];
      return forward(door, { ...call, params });
    }
    return { ...reply, result: null };
  }
  if (number === 0 && genesis !== undefined)
    return { ...reply, result: { ...block, hash: genesis } };
  return reply;
}

async function logsReply(door: Door, call: Call): Promise<Reply | number> {
  const faults = door.faults();
  const [filter] = call.params as [{ fromBlock: string; toBlock: string }];
  const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)];
  const turn = door.nextList();
  if (faults.range !== undefined && to - from + 1 > faults.range.blocks) {
    return tooWide(call, faults.range, { from, to });
  }
  if (faults.refuse !== undefined && from <= faults.refuse && faults.refuse <= to) {
    return refusal(call.id, -32005, "query timeout exceeded");
  }
  const reply = await forward(door, call);
  let logs = reply.result as Record<string, unknown>[];
  if (faults.results !== undefined && logs.length > faults.results) {
    const range = `${String(from)}-${String(to)}`;
    const message = `query exceeds max results ${String(faults.results)}, retry with the range ${range}`;
    return refusal(call.id, -32602, message);
  }
  if ((faults.lag ?? 0) > 0) {
    const head = await headOf(door);
    logs = logs.filter((log) => Number(log["blockNumber"]) <= head);
  }
  if (faults.drop === true) logs = logs.slice(1);
  const [first, second, ...others] = logs;
  if (faults.doubled === true && first !== undefined && second !== undefined) {
    const place = { blockNumber: first["blockNumber"], blockHash: first["blockHash"] };
    logs = [first, { ...second, ...place, logIndex: first["logIndex"] }, ...others];
  }
  const every = faults.emptyEvery;
  const lies = faults.empty === true || (every !== undefined && turn % every === 0);
  return { ...reply, result: lies ? [] : logs };
}

function tooWide(
  call: Call,
  { blocks, vendor }: { readonly blocks: number; readonly vendor: Vendor },
  { from, to }: { readonly from: number; readonly to: number },
): Reply | number {
  switch (vendor) {
    case "alchemy":
      return refusal(
        call.id,
        -32602,
        `You can make eth_getLogs requests with up to a ${String(blocks)} block range. Based on your ` +
          `parameters, this block range should work: [${hex(from)}, ${hex(from + blocks - 1)}]`,
      );
    case "infura":
      return refusal(
        call.id,
        -32602,
        `range ${String(to - from)} exceeds limit of ${String(blocks)}`,
      );
    case "quicknode":
      return 413;
    case "public":
      return refusal(call.id, -32000, "block range too large");
  }
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
