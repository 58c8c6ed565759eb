/**
 * Goal: order, repetitions and differences of logs are seen as a slow comparison sees them; a wide
 * past is read in wide steps and a busy one in narrow ones.
 * Method: random lists against sets of their whole content.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { contentKey, inOrder, sameLogs } from "../../../src/sources/evm/log-order.ts";
import { rangeWidth } from "../../../src/sources/evm/range-width.ts";
import type { RawLog } from "../../../src/sources/evm/wire.ts";

function log(block: number, index: number, over: Partial<RawLog> = {}): RawLog {
  return {
    address: "0xa",
    topics: ["0x1", "0x2"],
    data: "0x01",
    blockNumber: block,
    blockHash: `0xb${String(block)}`,
    txHash: "0xc",
    logIndex: index,
    ...over,
  };
}

const places = fc.array(fc.tuple(fc.nat(5), fc.nat(5)), { maxLength: 30 });

describe("inOrder", () => {
  test("default: any order and any repetitions are the same list", () => {
    fc.assert(
      fc.property(places, places, (some, more) => {
        const logs = [...some, ...more].map(([block, index]) => log(block, index));
        const ordered = inOrder(logs);
        expect(ordered.map(contentKey).toSorted()).toEqual(
          [...new Set(logs.map(contentKey))].toSorted(),
        );
        expect(sameLogs(ordered, inOrder(logs.toReversed()))).toBe(true);
        expect(inOrder(ordered)).toBe(ordered);
      }),
    );
  });

  test("behavior: two versions of a block lie side by side", () => {
    const other = log(1, 0, { blockHash: "0xother" });
    expect(inOrder([log(1, 1), other, log(1, 0)])).toEqual([log(1, 0), log(1, 1), other]);
  });

  test("error: two logs at one place of one block (B36)", () => {
    expect(() => inOrder([log(1, 0), log(1, 0, { data: "0x02" })])).toThrow(
      "two logs at index 0 of block 1",
    );
  });
});

describe("sameLogs", () => {
  test.each([
    { data: "0x02" },
    { address: "0xd" },
    { topics: ["0x1", "0x3"] },
    { topics: ["0x1"] },
    { txHash: "0xd" },
    { blockHash: "0xd" },
    { blockNumber: 2 },
    { logIndex: 1 },
  ])("behavior: another %j is another log", (over) => {
    expect(sameLogs([log(1, 0)], [log(1, 0, over)])).toBe(false);
    expect(sameLogs([log(1, 0)], [log(1, 0)])).toBe(true);
    expect(sameLogs([log(1, 0)], [])).toBe(false);
  });
});

describe("rangeWidth", () => {
  test("default: it begins narrow, grows fourfold over nothing, and ends somewhere", () => {
    const width = rangeWidth();
    const seen = [];
    for (let turn = 0; turn < 8; turn += 1) {
      seen.push(width.blocks());
      width.learn({ blocks: width.blocks(), logs: 0 });
    }
    expect(seen).toEqual([16, 64, 256, 1_024, 4_096, 16_384, 50_000, 50_000]);
  });

  test("behavior: a fuller range makes the next one shorter at once, never none", () => {
    const width = rangeWidth();
    width.learn({ blocks: 16, logs: 4_000 });
    expect(width.blocks()).toBe(8);
    width.learn({ blocks: 8, logs: 1_000_000 });
    expect(width.blocks()).toBe(1);
  });
});
