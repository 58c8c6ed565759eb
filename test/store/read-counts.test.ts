import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createReadCounter, monthlyReads } from "../../src/store/read-counts.ts";
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
  await db.pool.query("delete from tallyd.read_count");
  await db.pool.query("delete from tallyd.charge");
});

const NOW = new Date("2026-06-21T12:00:00Z");
const SCOPE = "platform/test";

function counterAt(time: string): ReturnType<typeof createReadCounter> {
  return createReadCounter(db.pool, { now: () => new Date(time) });
}

async function stored(): Promise<Record<string, unknown>[]> {
  const found = await db.pool.query<Record<string, unknown>>(
    "select day::text, scope, endpoint, reads from tallyd.read_count order by 1, 2, 3",
  );
  return found.rows;
}

async function charges(count: number, status: string, createdAt: string): Promise<void> {
  await db.pool.query(
    `insert into tallyd.charge (scope, charge_id, rail, amount, currency, status, created_at,
                                version_at, version_rank)
     select $1, $3 || $4 || n, 'stripe', 1, 'usd', $3, $4::timestamptz, $4::timestamptz, 1
       from generate_series(1, $2) as n`,
    [SCOPE, count, status, createdAt],
  );
}

describe("counting", () => {
  test("default: reads are summed by day, scope and endpoint", async () => {
    const counter = counterAt("2026-06-21T12:00:00Z");
    counter.count(SCOPE, "charges");
    counter.count(SCOPE, "charges");
    counter.count("acct_1/test", "events");
    expect(await stored()).toEqual([]);
    await counter.flush();
    await counter.flush();
    const another = counterAt("2026-06-21T23:59:59Z");
    another.count(SCOPE, "charges");
    await another.flush();
    expect(await stored()).toEqual([
      { day: "2026-06-21", scope: "acct_1/test", endpoint: "events", reads: 1n },
      { day: "2026-06-21", scope: SCOPE, endpoint: "charges", reads: 3n },
    ]);
  });

  test("behavior: a flush that fails keeps what it could not write", async () => {
    let broken = true;
    const flaky: Pick<TestDb["pool"], "query"> = Object.create(db.pool, {
      query: {
        value: (text: string, values: unknown[]) => {
          if (broken) throw new Error("the database is away");
          return db.pool.query(text, values);
        },
      },
    }) as Pick<TestDb["pool"], "query">;
    const counter = createReadCounter(flaky, { now: () => NOW });
    counter.count(SCOPE, "charges");
    await expect(counter.flush()).rejects.toThrow("away");
    counter.count(SCOPE, "charges");
    broken = false;
    await counter.flush();
    expect(await stored()).toMatchObject([{ reads: 2n }]);
  });
});

describe("the month", () => {
  test("default: 30 days count, with Stripe's floor for a small account", async () => {
    for (const [day, reads] of [
      ["2026-05-22", 1_000],
      ["2026-05-23", 20],
      ["2026-06-21", 3],
    ] as const) {
      await db.pool.query("insert into tallyd.read_count values ($1, $2, 'charges', $3)", [
        day,
        SCOPE,
        reads,
      ]);
    }
    expect(await monthlyReads(db.pool, { now: NOW, scopes: ["acct_1/test"] })).toEqual([
      { scope: "acct_1/test", used: 0n, allowed: 10_000n },
      { scope: SCOPE, used: 23n, allowed: 10_000n },
    ]);
  });

  test("behavior: paid charges of the last 30 days raise it, 500 reads each", async () => {
    await charges(30, "succeeded", "2026-06-20T00:00:00Z");
    await charges(50, "failed", "2026-06-20T00:00:00Z");
    await charges(50, "succeeded", "2026-05-01T00:00:00Z");
    expect(await monthlyReads(db.pool, { now: NOW, scopes: [SCOPE] })).toEqual([
      { scope: SCOPE, used: 0n, allowed: 15_000n },
    ]);
  });
});
