/**
 * A door between a reader and a chain that can be faulty on request, in the ways and words of real
 * nodes and vendors (cases B36, B38).
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import type { ProxyFaults } from "./proxy-faults.ts";
import { refused, replyTo } from "./proxy-node.ts";
import type { Call, Reply } from "./proxy-node.ts";

/** One call that passed. */
export interface Passed {
  readonly method: string;
  readonly params: readonly unknown[];
  /** The HTTP request that held it, counted from 1. */
  readonly request: number;
  /** How many calls that request held. */
  readonly calls: number;
}

/** The door. */
export interface RpcProxy {
  readonly url: string;
  /** These faults and no others from now on; counting begins anew. */
  readonly set: (faults: ProxyFaults) => void;
  /** The calls that passed, oldest first; the oldest are forgotten. */
  readonly journal: readonly Passed[];
  /** HTTP requests, also those that got no answer. */
  readonly requests: () => number;
  readonly close: () => Promise<void>;
}

// A benchmark through the door must not eat the memory.
const JOURNAL_MAX = 20_000;

interface Door {
  readonly target: string;
  readonly journal: Passed[];
  faults: ProxyFaults;
  requests: number;
  /** Lists, or requests with lists, since the faults were set. */
  lists: number;
  busy: number;
}

/** Starts a door before a chain. */
export async function startRpcProxy(target: string): Promise<RpcProxy> {
  const door: Door = { target, journal: [], faults: {}, requests: 0, lists: 0, busy: 0 };
  const server = createServer((request, response) => {
    handle(door, request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else send(door, response, 502, "bad gateway");
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    set: (faults) => {
      door.faults = faults;
      door.busy = faults.busy ?? 0;
      door.lists = 0;
    },
    journal: door.journal,
    requests: () => door.requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  };
}

async function handle(
  door: Door,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  door.requests += 1;
  const request = door.requests;
  const body = await textOf(incoming);
  const { faults } = door;
  if (faults.delayMs !== undefined) await sleep(faults.delayMs);
  if (faults.dead === true) {
    response.destroy();
    return;
  }
  const parsed = JSON.parse(body) as Call | readonly Call[];
  const calls = isList(parsed) ? parsed : [parsed];
  if (door.busy > 0) {
    door.busy -= 1;
    sendBusy(door, response, calls, isList(parsed));
    return;
  }
  if (faults.status !== undefined) {
    send(door, response, faults.status, JSON.stringify(statusBody(faults.status)));
    return;
  }
  if (isList(parsed) && faults.batches === false) {
    const message = "batch requests are not supported";
    send(
      door,
      response,
      200,
      JSON.stringify(refused(null, { status: 200, code: -32600, message })),
    );
    return;
  }
  for (const { method, params } of calls) {
    door.journal.push({ method, params, request, calls: calls.length });
  }
  if (door.journal.length > 2 * JOURNAL_MAX) door.journal.splice(0, JOURNAL_MAX);
  await answerAll(door, response, calls, isList(parsed));
}

async function answerAll(
  door: Door,
  response: ServerResponse,
  calls: readonly Call[],
  isBatch: boolean,
): Promise<void> {
  const { faults, target } = door;
  const liesNow = lieCounter(door);
  const replies: Reply[] = [];
  for (const call of calls) {
    const { status, ...reply } = await replyTo({ target, faults, liesNow }, call);
    if (status !== undefined) {
      send(door, response, status, JSON.stringify(reply));
      return;
    }
    replies.push(reply);
  }
  send(door, response, 200, JSON.stringify(isBatch ? replies : replies[0]));
}

/** Says for each list of one request whether it is a lie. */
function lieCounter(door: Door): () => boolean {
  const { empty, emptyEvery, emptyBy } = door.faults;
  let turn: number | null = null;
  return () => {
    if (emptyBy !== "request" || turn === null) {
      door.lists += 1;
      turn = door.lists;
    }
    return empty === true || (emptyEvery !== undefined && turn % emptyEvery === 0);
  };
}

function isList(parsed: Call | readonly Call[]): parsed is readonly Call[] {
  return Array.isArray(parsed);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

/** What gateways say beside a status. */
function statusBody(status: number): unknown {
  if (status === 401 || status === 403) return { error: "invalid api key" };
  const message = "no backend is currently healthy to serve traffic";
  return refused(null, { status: 200, code: -32011, message });
}

function sendBusy(
  door: Door,
  response: ServerResponse,
  calls: readonly Call[],
  isBatch: boolean,
): void {
  if (door.faults.busyBy === "body") {
    const message = "daily request count exceeded, request rate limited";
    const replies = calls.map(({ id }) => refused(id, { status: 200, code: -32005, message }));
    send(door, response, 200, JSON.stringify(isBatch ? replies : replies[0]));
    return;
  }
  response.setHeader("retry-after", door.faults.retryAfter ?? "1");
  send(door, response, 429, '{"error":"Too Many Requests"}');
}

function send(door: Door, response: ServerResponse, status: number, text: string): void {
  // Spaces after a value are JSON as well.
  const body = text + " ".repeat(door.faults.padBytes ?? 0);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  if (door.faults.cut !== true) {
    response.end(body);
    return;
  }
  response.write(body.slice(0, Math.floor(body.length / 2)), () => response.destroy());
}
