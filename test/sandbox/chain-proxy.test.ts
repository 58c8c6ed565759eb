/** The door before a chain: each fault as a reader meets it, and nothing else changed. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { call } from "../../src/sandbox/chain/json-rpc.ts";
import type { ProxyFaults } from "../../src/sandbox/chain/proxy-faults.ts";
import { chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";

const fault = await chainFault();

type Log = Readonly<Record<string, unknown>>;

describe.skipIf(fault !== "")("rpc proxy", () => {
  let world: ChainWorld;
  let head: number;
  beforeAll(async () => {
    world = await openChainWorld();
    const { chain, token, payer, payee } = world;
    for (const value of [1n, 2n, 3n]) {
      await chain.submit(token, await chain.sign(token, payer, payee.address, value));
    }
    await chain.mine(10);
    head = (await chain.head()).number;
  });
  afterEach(() => world.proxy.set({}));
  afterAll(() => world.close());

  const ask = (method: string, ...params: unknown[]): Promise<unknown> =>
    call(world.proxy.url, method, params);
  const logs = (fromBlock = 0, toBlock: number | string = "latest"): Promise<readonly Log[]> => {
    const to = typeof toBlock === "number" ? hex(toBlock) : toBlock;
    return ask("eth_getLogs", { fromBlock: hex(fromBlock), toBlock: to }) as Promise<Log[]>;
  };
  const numberOf = async (tag: string): Promise<number | null> => {
    const block = (await ask("eth_getBlockByNumber", tag, false)) as Log | null;
    return block === null ? null : Number(block["number"]);
  };
  const raw = async (
    body: string,
  ): Promise<{ status: number; text: string; after: string | null }> => {
    const response = await fetch(world.proxy.url, { method: "POST", body });
    const after = response.headers.get("retry-after");
    return { status: response.status, text: await response.text(), after };
  };
  const CHAIN_ID = '{"jsonrpc":"2.0","id":7,"method":"eth_chainId","params":[]}';

  test("default: passes single calls and batches, and keeps a journal", async () => {
    expect(await ask("eth_chainId")).toBe("0x7a69");
    const before = world.proxy.requests();
    const both = await raw(`[${CHAIN_ID},{"jsonrpc":"2.0","id":8,"method":"nope","params":[]}]`);
    const replies = JSON.parse(both.text) as { id: number; error?: { code: number } }[];
    expect(replies.map((one) => [one.id, one.error?.code])).toEqual([
      [7, undefined],
      [8, -32601],
    ]);
    expect(world.proxy.requests()).toBe(before + 1);
    expect(world.proxy.journal.slice(-2)).toMatchObject([
      { method: "eth_chainId", calls: 2 },
      { method: "nope", calls: 2 },
    ]);
  });

  test("behavior: every second list is empty, by answer or by request", async () => {
    const all = (await logs()).length;
    world.proxy.set({ emptyEvery: 2 });
    expect([(await logs()).length, (await logs()).length]).toEqual([all, 0]);
    world.proxy.set({ emptyEvery: 2, emptyBy: "request" });
    const list =
      '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"latest"}]}';
    const counts = async (): Promise<number[]> => {
      const replies = JSON.parse((await raw(`[${list},${list}]`)).text) as { result: Log[] }[];
      return replies.map((one) => one.result.length);
    };
    expect([await counts(), await counts()]).toEqual([
      [all, all],
      [0, 0],
    ]);
  });

  test.each<[string, (end: number) => ProxyFaults]>([
    ["lagging", (end) => ({ lag: head - end })],
    ["frozen", (end) => ({ frozenAt: end })],
  ])("behavior: a node that is behind knows nothing above its head: %s", async (_, faults) => {
    const all = await logs();
    const [last] = all.slice(-1);
    const end = Number(last?.["blockNumber"]) - 1;
    world.proxy.set(faults(end));
    expect(Number(await ask("eth_blockNumber"))).toBe(end);
    expect(await numberOf("latest")).toBe(end);
    expect(await numberOf("safe")).toBeLessThan(end);
    expect(await numberOf(String(last?.["blockNumber"]))).toBeNull();
    expect((await logs(0, head)).length).toBeLessThan(all.length);
    expect(await logs(head - 1, head)).toEqual([]);
    expect(await ask("eth_getTransactionReceipt", last?.["transactionHash"])).toBeNull();
    expect(await ask("eth_getTransactionByHash", last?.["transactionHash"])).toBeNull();
    expect(await ask("eth_getBlockByHash", last?.["blockHash"], false)).toBeNull();
    const byHash = { blockHash: last?.["blockHash"] };
    await expect(ask("eth_getLogs", byHash)).rejects.toThrow("unknown block");
    const read = { to: world.token.address, data: "0x313ce567" };
    expect(Number(await ask("eth_call", read, "latest"))).toBe(6);
    await expect(ask("eth_call", read, hex(head))).rejects.toThrow("header not found");
    await expect(ask("eth_call", read, byHash)).rejects.toThrow("header not found");
  });

  test("behavior: a head that lies names blocks that are not there", async () => {
    world.proxy.set({ ahead: 4 });
    expect(await numberOf("latest")).toBe(head + 4);
    expect(Number(await ask("eth_blockNumber"))).toBe(head + 4);
    expect(await numberOf(hex(head + 1))).toBeNull();
    expect(await logs(head + 1, head + 4)).toEqual([]);
  });

  test("behavior: another chain, another genesis, unknown tags", async () => {
    world.proxy.set({ chainId: 1, genesis: `0x${"ab".repeat(32)}`, tags: ["safe"] });
    expect(await ask("eth_chainId")).toBe("0x1");
    expect(await ask("eth_getBlockByNumber", "0x0", false)).toMatchObject({
      hash: `0x${"ab".repeat(32)}`,
    });
    await expect(ask("eth_getBlockByNumber", "safe", false)).rejects.toThrow("invalid block tag");
  });

  test.each<[string, number, RegExp]>([
    ["alchemy", -32602, /up to a 3 block range.*should work: \[0x0, 0x2\]/],
    ["alchemy-free", -32600, /Free tier.*\[0x0, 0x2\]\. Upgrade/],
    ["ankr", -32600, /too wide/],
    ["base", -32011, /no backend/],
    ["cdp", -32000, /at most 3 blocks/],
    ["infura", -32602, /range 9 exceeds limit of 3/],
    ["public", -32000, /block range too large/],
    ["publicnode", -32701, /exceed maximum block range: 3/],
    ["quicknode", -32614, /limited to a 3 range/],
    ["reth", -32602, /query exceeds max block range 3/],
  ])("behavior: more blocks than %s allows", async (vendor, code, message) => {
    world.proxy.set({ range: { blocks: 3, vendor } as ProxyFaults["range"] & object });
    await expect(logs(0, 8)).rejects.toMatchObject({ code });
    await expect(logs(0, 8)).rejects.toThrow(message);
    expect(Array.isArray(await logs(0, 2))).toBe(true);
  });

  test.each<[string, string | undefined, RegExp]>([
    ["infura", undefined, /more than 1 results\. Try with this block range \[0x0, 0x3\]/],
    ["alchemy", undefined, /response size limit, this block range should work: \[0x0, 0x3\]/],
    ["reth", undefined, /max results 1, retry with the range 0-8/],
    ["reth", "inverted", /retry with the range 8-0/],
    ["arbitrum", undefined, /logs matched by query exceeds limit of 1/],
  ])("behavior: more logs than %s answers (%s)", async (vendor, suggest, message) => {
    const results = { max: 1, vendor, ...(suggest === undefined ? {} : { suggest }) };
    world.proxy.set({ results } as ProxyFaults);
    await expect(logs(0, 8)).rejects.toThrow(message);
  });

  test("behavior: statuses of HTTP, rate limits in both ways, no batches", async () => {
    world.proxy.set({ range: { blocks: 1, vendor: "quicknode" } });
    const wide =
      '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x9"}]}';
    expect((await raw(`[${wide}]`)).status).toBe(413);
    world.proxy.set({ busy: 1, retryAfter: "3" });
    expect(await raw(CHAIN_ID)).toMatchObject({ status: 429, after: "3" });
    expect((await raw(CHAIN_ID)).status).toBe(200);
    world.proxy.set({ busy: 1, busyBy: "body" });
    await expect(ask("eth_chainId")).rejects.toMatchObject({ code: -32005 });
    world.proxy.set({ status: 403 });
    expect((await raw(CHAIN_ID)).status).toBe(403);
    world.proxy.set({ batches: false });
    expect(JSON.parse((await raw(`[${CHAIN_ID}]`)).text)).toMatchObject({
      error: { code: -32600 },
    });
  });

  test("behavior: answers that break off, are too long, late, or never come", async () => {
    world.proxy.set({ cut: true });
    await expect(raw(CHAIN_ID)).rejects.toThrow();
    world.proxy.set({ padBytes: 11 * 1_048_576 });
    expect((await raw(CHAIN_ID)).text.length).toBeGreaterThan(11 * 1_048_576);
    world.proxy.set({ delayMs: 60 });
    const began = performance.now();
    await raw(CHAIN_ID);
    expect(performance.now() - began).toBeGreaterThan(55);
    world.proxy.set({ dead: true });
    await expect(raw(CHAIN_ID)).rejects.toThrow();
  });

  test("behavior: single logs that are lost, repeated, removed, unmined, or at one place", async () => {
    const all = await logs();
    const [, lost] = all;
    world.proxy.set({ dropTransaction: String(lost?.["transactionHash"]) });
    expect((await logs()).length).toBeLessThan(all.length);
    expect(await logs()).not.toContainEqual(lost);
    world.proxy.set({ repeated: true });
    expect((await logs()).slice(0, 2)).toEqual([all[0], all[0]]);
    world.proxy.set({ removed: true });
    expect((await logs())[0]).toMatchObject({ removed: true });
    world.proxy.set({ unmined: true });
    expect((await logs())[0]).toMatchObject({ blockNumber: null });
    world.proxy.set({ doubled: true });
    const [one, two] = await logs();
    expect([two?.["blockHash"], two?.["logIndex"]]).toEqual([
      one?.["blockHash"],
      one?.["logIndex"],
    ]);
    world.proxy.set({ refuse: 2 });
    await expect(logs(2, 2)).rejects.toThrow("query timeout exceeded");
  });
});

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
