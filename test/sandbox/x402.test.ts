/**
 * Goal: what the official client of x402 is told, and what is on the chain, are two things.
 * Method: the official client, server and facilitator on a real EVM; the stories of the rail.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import { tell } from "../support/x402/stories.ts";
import type { STORIES, Told } from "../support/x402/stories.ts";
import { openX402World } from "../support/x402/world.ts";
import type { X402World } from "../support/x402/world.ts";

const fault = await chainFault();

const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const CANCELED = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

interface WireLog {
  readonly topics: readonly string[];
  readonly transactionHash: string;
  readonly logIndex: string;
}

describe.skipIf(fault !== "")("x402", () => {
  let evm: ChainWorld;
  let world: X402World;
  beforeAll(async () => {
    evm = await openChainWorld();
    world = await openX402World(evm);
  });
  afterAll(async () => {
    await world.close();
    await evm.close();
  });

  /** What became of the nonces that were signed, and the hashes under which. */
  async function fates(told: Told): Promise<{ fate: string; hash: string | null }[]> {
    const filter = { fromBlock: "0x0", toBlock: "latest", address: evm.token.address };
    const logs = (await evm.anvil.rpc("eth_getLogs", [filter])) as WireLog[];
    return told.signed.map(({ nonce }) => {
      const at = logs.findIndex((log) => log.topics[2] === nonce);
      const [log, next] = [logs[at], logs[at + 1]];
      if (log === undefined) return { fate: "unused", hash: null };
      const hash = log.transactionHash;
      if (log.topics[0] === CANCELED) return { fate: "canceled", hash };
      const paid = log.topics[0] === USED && next?.topics[0] === TRANSFER;
      const adjacent = paid && Number(next.logIndex) === Number(log.logIndex) + 1;
      return { fate: adjacent && next.transactionHash === hash ? "paid" : "used", hash };
    });
  }

  async function balance(): Promise<bigint> {
    const data = `0x70a08231${evm.payee.address.slice(2).padStart(64, "0")}`;
    const call = [{ to: evm.token.address, data }, "latest"];
    return BigInt(String(await evm.anvil.rpc("eth_call", call)));
  }

  const USED_BEFORE = "invalid_exact_evm_nonce_already_used";

  test.each<[keyof typeof STORIES, string, Partial<Told["seen"][number]>[], string[], number]>([
    ["A", "normal", [{ status: 200, success: true }], ["paid"], 1],
    [
      "B",
      "the answer is lost, bought again: paid twice",
      [{ status: null }, { status: 200, success: true }],
      ["paid", "paid"],
      2,
    ],
    [
      "C",
      "the answer is lost, the same header again: paid, refused",
      [{ status: null }, { status: 402, error: USED_BEFORE }],
      ["paid"],
      1,
    ],
    ["E", "a third party is first", [{ status: 402, error: USED_BEFORE }], ["paid"], 0],
    ["F", "canceled", [{ status: 402, error: USED_BEFORE }], ["canceled"], 0],
    [
      "G",
      "pending, then mined: told that it failed, paid",
      [
        { status: 402, success: false, error: "settlement_pending" },
        { status: 402, error: USED_BEFORE },
      ],
      ["paid"],
      1,
    ],
    ["H", "replaced by a dearer one", [{ status: 200, success: true }], ["paid"], 1],
    ["I", "reorganised away", [{ status: 200, success: true }], ["unused"], 1],
  ])("behavior: %s, %s", async (story, _title, seen, fate, served) => {
    const before = await balance();
    const told = await tell(world, story);
    expect(told.seen).toMatchObject(seen);
    expect(told.served).toBe(served);
    const found = await fates(told);
    expect(found.map((one) => one.fate)).toEqual(fate);
    const paid = fate.filter((one) => one === "paid").length;
    expect(await balance()).toBe(before + BigInt(paid) * 10_000n);
    // The hash that the client was told is the mined one, but where a dearer one replaced it.
    const [last] = told.seen.slice(-1);
    if (story === "A") expect(found[0]?.hash).toBe(last?.transaction);
    if (story === "G") expect(found[0]?.hash).toBe(told.seen[0]?.transaction);
    if (story === "H") {
      expect(last?.transaction).toMatch(/^0x[0-9a-f]{64}$/);
      expect(found[0]?.hash).not.toBe(last?.transaction);
    }
    if (story === "B") {
      const ids = told.signed.map((one) => one.paymentId);
      expect(ids[0]).toMatch(/^pay_/);
      expect(ids[1]).toBe(ids[0]);
      expect(told.signed[1]?.nonce).not.toBe(told.signed[0]?.nonce);
    }
  });

  test("behavior: D, the same header three times at once: paid once, made three times", async () => {
    const before = await balance();
    const told = await tell(world, "D");
    expect((await fates(told)).map((one) => one.fate)).toEqual(["paid"]);
    expect(await balance()).toBe(before + 10_000n);
    const statuses = told.seen.map((one) => one.status).sort();
    expect(statuses).toEqual([200, 402, 402]);
    expect(told.served).toBe(3);
  });
});
