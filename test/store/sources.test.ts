import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  coverage,
  covers,
  getSource,
  listSources,
  markFailed,
  markOk,
  missingRanges,
  saveProgress,
} from "../../src/store/sources.ts";
import { withTx } from "../../src/store/tx.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb();
});

afterAll(async () => {
  await db.close();
});

beforeEach(async () => {
  await db.pool.query("delete from tallyd.source");
});

const key = { source: "stripe.charges", scope: "platform/test" };

function at(minute: number): Date {
  return new Date(Date.UTC(2026, 0, 1, 0, minute));
}

async function cover(from: number, to: number): Promise<void> {
  const coveredRange = { from: at(from), to: at(to) };
  await saveProgress(db.pool, { ...key, cursor: null, coveredRange });
}

describe("coverage", () => {
  test("default: ranges that touch or overlap become one, others stay apart", async () => {
    expect(await coverage(db.pool, key)).toEqual([]);
    await cover(0, 10);
    await cover(20, 30);
    await cover(10, 15);
    await cover(25, 40);
    expect(await coverage(db.pool, key)).toEqual([
      { from: at(0), to: at(15) },
      { from: at(20), to: at(40) },
    ]);
  });

  test("behavior: a range is covered to its last instant or not at all", async () => {
    await cover(0, 10);
    expect(await covers(db.pool, { ...key, from: at(0), to: at(10) })).toBe(true);
    const later = new Date(at(10).getTime() + 1);
    expect(await covers(db.pool, { ...key, from: at(0), to: later })).toBe(false);
    await cover(20, 30);
    expect(await covers(db.pool, { ...key, from: at(5), to: at(25) })).toBe(false);
  });

  test("behavior: what is missing is the complement", async () => {
    const range = { ...key, from: at(0), to: at(60) };
    expect(await missingRanges(db.pool, range)).toEqual([{ from: at(0), to: at(60) }]);
    await cover(10, 20);
    await cover(30, 60);
    expect(await missingRanges(db.pool, range)).toEqual([
      { from: at(0), to: at(10) },
      { from: at(20), to: at(30) },
    ]);
    expect(await missingRanges(db.pool, { ...key, from: at(9), to: at(9) })).toEqual([]);
    expect(await missingRanges(db.pool, { ...key, from: at(9), to: at(8) })).toEqual([]);
  });

  test("behavior: sources and scopes do not lend each other coverage", async () => {
    await cover(0, 60);
    const range = { from: at(0), to: at(1) };
    expect(await covers(db.pool, { ...key, scope: "acct_1/test", ...range })).toBe(false);
    expect(await covers(db.pool, { ...key, source: "stripe.refunds", ...range })).toBe(false);
  });

  test("behavior: progress goes with the transaction that stored it", async () => {
    const rolledBack = withTx(db.pool, async (tx) => {
      const coveredRange = { from: at(0), to: at(9) };
      await saveProgress(tx, { ...key, cursor: { last: "ch_1" }, coveredRange });
      throw new Error("the store fails");
    });
    await expect(rolledBack).rejects.toThrow("the store fails");
    expect(await getSource(db.pool, key)).toBeNull();
  });

  test("behavior: a cursor is kept when only coverage moves, and the other way round", async () => {
    await saveProgress(db.pool, { ...key, cursor: { last: "ch_1" }, coveredRange: null });
    await cover(0, 1);
    expect(await getSource(db.pool, key)).toMatchObject({
      cursor: { last: "ch_1" },
      covered: [{ from: at(0), to: at(1) }],
    });
    await saveProgress(db.pool, { ...key, cursor: {}, coveredRange: null });
    expect(await getSource(db.pool, key)).toMatchObject({
      cursor: {},
      covered: [{ from: at(0), to: at(1) }],
    });
  });

  test("behavior: twenty writers at once lose nothing", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => cover(index, index + 1)));
    expect(await coverage(db.pool, key)).toEqual([{ from: at(0), to: at(20) }]);
  });
});

describe("health", () => {
  const failure = { ...key, code: "network", message: "no answer" } as const;

  test("default: failures are counted in a row, from the first on", async () => {
    await cover(0, 1);
    await markFailed(db.pool, { ...failure, at: at(1) });
    await markFailed(db.pool, { ...failure, code: "server", message: "503", at: at(2) });
    expect(await getSource(db.pool, key)).toMatchObject({
      failures: 2,
      failingSince: at(1),
      lastErrorCode: "server",
      lastError: "503",
      lastOkAt: null,
      covered: [{ from: at(0), to: at(1) }],
    });
    await markOk(db.pool, { ...key, at: at(3) });
    expect(await getSource(db.pool, key)).toMatchObject({
      failures: 0,
      failingSince: null,
      lastErrorCode: null,
      lastError: null,
      lastOkAt: at(3),
    });
  });

  test("behavior: an older success does not turn the time back", async () => {
    await markOk(db.pool, { ...key, at: at(9) });
    await markOk(db.pool, { ...key, at: at(3) });
    expect((await getSource(db.pool, key))?.lastOkAt).toEqual(at(9));
  });

  test("behavior: an endless message is cut", async () => {
    await markFailed(db.pool, { ...failure, message: "x".repeat(9_000), at: at(1) });
    expect((await getSource(db.pool, key))?.lastError).toHaveLength(2_000);
  });

  test("default: all sources are listed in order", async () => {
    await markOk(db.pool, { source: "stripe.events", scope: "platform/test", at: at(1) });
    await markOk(db.pool, { ...key, at: at(1) });
    expect((await listSources(db.pool)).map((row) => row.source)).toEqual([
      "stripe.charges",
      "stripe.events",
    ]);
  });
});
