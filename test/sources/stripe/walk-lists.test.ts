import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ListPage, StripeReader } from "../../../src/sources/stripe/client.ts";
import { ensureCoverage, PROOF_LISTS, walkLists } from "../../../src/sources/stripe/walk-lists.ts";
import { walkRange } from "../../../src/sources/stripe/walk-range.ts";
import { coverage, getSource } from "../../../src/store/sources.ts";
import {
  ACCOUNT,
  ACCOUNT_SCOPE,
  DAY,
  HOUR,
  idsOf,
  KEY,
  MINUTE,
  openStripeWorld,
  PLATFORM_SCOPE,
  SECOND,
  secondsAt,
  T,
} from "./stripe-world.ts";
import type { StripeWorld } from "./stripe-world.ts";

let world: StripeWorld;

beforeEach(async () => {
  world = await openStripeWorld();
});

afterEach(async () => {
  await world.close();
});

const CHARGES = { source: "stripe.charges", scope: PLATFORM_SCOPE };

/** Numbers of seconds since T, since all edges here are whole seconds. */
async function coveredCharges(): Promise<[number, number][]> {
  const ranges = await coverage(world.pool, CHARGES);
  return ranges.map(({ from, to }) => [(from.getTime() - T) / SECOND, (to.getTime() - T) / SECOND]);
}

function charges(count: number, second: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `ch_${prefix}${String(index).padStart(4, "0")}`;
    world.sandbox.control.seed.charge({ id, created: secondsAt(second * SECOND), events: false });
    return id;
  });
}

function at(second: number): Date {
  return new Date(T + second * SECOND);
}

async function walkCharges(from: number, to: number, client?: StripeReader): Promise<void> {
  const deps = client === undefined ? world.deps : { ...world.deps, client };
  const range = { from: at(from), to: at(to) };
  await walkRange(deps, { scope: PLATFORM_SCOPE, resource: "charges", ...range });
}

/** The real client with one thing changed about its pages. */
function lying(
  change: (
    page: ListPage,
    call: number,
    ask: () => Promise<ListPage>,
  ) => ListPage | Promise<ListPage>,
): StripeReader {
  let call = 0;
  return {
    ...world.client,
    list: async (scope, resource, params) => {
      call += 1;
      const ask = (): Promise<ListPage> => world.client.list(scope, resource, params);
      return change(await ask(), call, ask);
    },
  };
}

describe("B24: windows and cursors that skip", () => {
  test("default: a crowded second on the edge, a crash, and objects that come late", async () => {
    world.clock.ms = T + 2 * HOUR;
    const expected = [
      ...charges(1, 999, "before"),
      ...charges(250, 1_000, "crowd"),
      ...charges(1, 1_001, "after"),
    ];
    await walkCharges(900, 1_000);
    expect(await coveredCharges()).toEqual([[900, 1_000]]);
    expect(await idsOf(world.pool, "charge")).toHaveLength(1);

    world.sandbox.control.fault({ kind: "error_before", nth: 2, count: Infinity });
    await expect(walkCharges(1_000, 1_100)).rejects.toMatchObject({ code: "server" });
    expect(await idsOf(world.pool, "charge")).toHaveLength(101);
    expect(await coveredCharges()).toEqual([[900, 1_000]]);

    world.sandbox.control.clearFaults();
    expected.push(...charges(3, 1_050, "late"));
    await walkCharges(1_000, 1_100);
    expect(await idsOf(world.pool, "charge")).toEqual(expected.sort());
    expect(await coveredCharges()).toEqual([[900, 1_100]]);
  });

  test.each([1, 7, 100])("behavior: pages of %i objects give the same", async (limit) => {
    world.clock.ms = T + 2 * HOUR;
    const expected = [...charges(12, 10, "a"), ...charges(3, 11, "b"), ...charges(1, 20, "edge")];
    const client: StripeReader = {
      ...world.client,
      list: (scope, resource, params) => world.client.list(scope, resource, { ...params, limit }),
    };
    await walkCharges(10, 20, client);
    expect(await idsOf(world.pool, "charge")).toEqual(expected.slice(0, 15));
    await walkCharges(20, 21, client);
    expect(await idsOf(world.pool, "charge")).toEqual(expected);
  });

  test("behavior: a long window is closed part by part, each with its edge second", async () => {
    world.clock.ms = T + 2 * HOUR;
    const expected: string[] = [];
    for (let second = 0; second < 40; second += 1) {
      expected.push(...charges(3, second, `s${String(second).padStart(2, "0")}_`));
    }
    let calls = 0;
    const client: StripeReader = {
      ...world.client,
      list: (scope, resource, params) => {
        calls += 1;
        if (calls === 56) throw new Error("the process dies here");
        return world.client.list(scope, resource, { ...params, limit: 2 });
      },
    };
    await expect(walkCharges(0, 100, client)).rejects.toThrow("dies");
    // 50 pages of 2 reach into second 6, the newer ones are proven.
    expect(await coveredCharges()).toEqual([[7, 100]]);
    await walkCharges(0, 100, client);
    expect(await coveredCharges()).toEqual([[0, 100]]);
    expect(await idsOf(world.pool, "charge")).toEqual(expected);
    expect(calls).toBeLessThan(75);
  });

  test("behavior: what is covered is never read again", async () => {
    world.clock.ms = T + 2 * HOUR;
    charges(5, 50, "a");
    await walkCharges(0, 100);
    world.sandbox.control.clearRequests();
    await walkCharges(20, 80);
    expect(world.sandbox.control.requests).toEqual([]);
    await walkCharges(0, 120);
    expect(world.sandbox.control.requests).toHaveLength(1);
    expect(world.sandbox.control.requests[0]?.query).toContain(String(secondsAt(100 * SECOND)));
  });

  test("behavior: a cursor whose object vanished starts the part again", async () => {
    world.clock.ms = T + 2 * HOUR;
    const expected = charges(150, 50, "a");
    let gone = false;
    const client = lying((page, call) => {
      if (call !== 2 || gone) return page;
      gone = true;
      return { kind: "cursor_gone" };
    });
    await walkCharges(0, 100, client);
    expect(await idsOf(world.pool, "charge")).toEqual(expected);
  });
});

describe("lists that lie", () => {
  const empty = { kind: "page", objects: [], hasMore: true, readAt: at(0) } as const;

  test("error: empty pages that promise more do not go on for ever", async () => {
    world.clock.ms = T + 2 * HOUR;
    let calls = 0;
    const client = lying((_page, call) => {
      calls = call;
      return empty;
    });
    await expect(walkCharges(0, 100, client)).rejects.toMatchObject({ code: "shape" });
    expect(calls).toBe(3);
    expect(await coveredCharges()).toEqual([]);
  });

  test("behavior: one such page is asked for again", async () => {
    world.clock.ms = T + 2 * HOUR;
    const expected = charges(5, 50, "a");
    await walkCharges(
      0,
      100,
      lying((page, call) => (call === 1 ? empty : page)),
    );
    expect(await idsOf(world.pool, "charge")).toEqual(expected);
  });

  test("error: the same page again and again", async () => {
    world.clock.ms = T + 2 * HOUR;
    charges(3, 50, "a");
    const client = lying((page) => ({ ...page, hasMore: true }));
    const always = { ...client, list: () => client.list(PLATFORM_SCOPE, "charges", {}) };
    await expect(walkCharges(0, 100, always)).rejects.toMatchObject({ code: "shape" });
    expect(await coveredCharges()).toEqual([]);
  });

  test("error: objects without a time", async () => {
    world.clock.ms = T + 2 * HOUR;
    const page = { ...empty, objects: [{ id: "ch_1" }] };
    await expect(
      walkCharges(
        0,
        100,
        lying(() => page),
      ),
    ).rejects.toMatchObject({ code: "shape" });
  });
});

describe("the newest end", () => {
  test("default: nothing younger than the safety lag is claimed", async () => {
    await ensureCoverage(world.deps, { scope: PLATFORM_SCOPE, from: at(-600), to: at(0) });
    expect(await coveredCharges()).toEqual([[-600, -60]]);
  });

  test("behavior: a clock of ours that runs ahead claims less", async () => {
    const client = { ...world.client, clockAheadMs: () => 300_000 };
    await walkCharges(-600, 0, client);
    expect(await coveredCharges()).toEqual([[-600, -360]]);
    await walkCharges(-600, 0, { ...world.client, clockAheadMs: () => 1_500 });
    expect(await coveredCharges()).toEqual([[-600, -60]]);
  });
});

describe("B26: a run that stops in the middle", () => {
  test("default: 429 six times is a partial run, the next one completes it", async () => {
    charges(300, -HOUR / SECOND, "a");
    world.sandbox.control.fault({ kind: "rate_limit", path: "/v1/charges", nth: 2, count: 6 });
    const partial = await walkLists(world.deps, { resources: PROOF_LISTS });
    expect(partial).toMatchObject({
      ok: false,
      failed: [{ scope: PLATFORM_SCOPE, source: "stripe.charges", code: "rate_limit" }],
    });
    expect(await coveredCharges()).toEqual([]);
    expect(await getSource(world.pool, CHARGES)).toMatchObject({
      failures: 1,
      failingSince: at(0),
      lastErrorCode: "rate_limit",
      lastOkAt: null,
    });
    const whole = await walkLists(world.deps, { resources: PROOF_LISTS });
    expect(whole.ok).toBe(true);
    expect(await coveredCharges()).toEqual([[-48 * 3_600, -60]]);
    expect(await getSource(world.pool, CHARGES)).toMatchObject({
      failures: 0,
      failingSince: null,
      lastErrorCode: null,
      lastOkAt: at(0),
    });
    expect(await idsOf(world.pool, "charge")).toHaveLength(300);
  });

  test("error: a revoked key fails each source once and proves nothing", async () => {
    world.sandbox.control.revokeKey(KEY);
    const result = await walkLists(world.deps);
    expect(result.failed.map((failed) => failed.code)).toEqual(["auth", "auth", "auth", "auth"]);
    expect(world.sandbox.control.requests).toHaveLength(4);
    expect(await coveredCharges()).toEqual([]);
    await walkLists(world.deps);
    expect(await getSource(world.pool, CHARGES)).toMatchObject({ failures: 2 });
  });
});

describe("scopes and the first pass", () => {
  test("behavior: accounts are walked apart, one that fails stops no other (B20)", async () => {
    const settings = {
      ...world.deps.settings,
      stripe: { ...world.deps.settings.stripe, accounts: [ACCOUNT] },
    };
    const created = secondsAt(-HOUR);
    world.sandbox.control.seed.charge({ id: "ch_p", created });
    world.sandbox.control.seed.charge({ id: "ch_c", created, account: ACCOUNT });
    world.sandbox.control.fault({
      kind: "respond",
      status: 403,
      account: ACCOUNT,
      path: "/v1/charges",
    });
    const first = await walkLists({ ...world.deps, settings });
    expect(first.failed).toMatchObject([{ scope: ACCOUNT_SCOPE, source: "stripe.charges" }]);
    expect(await idsOf(world.pool, "charge")).toEqual(["ch_p"]);
    const second = await walkLists({ ...world.deps, settings });
    expect(second.ok).toBe(true);
    const stored = await world.pool.query<{ scope: string; charge_id: string }>(
      "select scope, charge_id from tallyd.charge order by charge_id",
    );
    expect(stored.rows).toEqual([
      { scope: ACCOUNT_SCOPE, charge_id: "ch_c" },
      { scope: PLATFORM_SCOPE, charge_id: "ch_p" },
    ]);
  });

  test("behavior: the first pass reaches the oldest unresolved row, 30 days at most", async () => {
    await insertIntent("i1", "recorded", -20 * DAY);
    await insertIntent("i2", "reconciling", -5 * DAY);
    await walkLists(world.deps, { resources: ["charges"] });
    expect((await coveredCharges())[0]?.[0]).toBe((-5 * DAY - MINUTE) / SECOND);
    await insertIntent("i3", "in_flight", -90 * DAY);
    await walkLists(world.deps, { resources: ["charges"] });
    expect(await coveredCharges()).toEqual([[(-30 * DAY) / SECOND, -60]]);
  });

  test("behavior: after a stop of days the walk goes on where it was", async () => {
    await walkLists(world.deps, { resources: ["charges"] });
    world.clock.ms = T + 40 * DAY;
    const [id] = charges(1, (3 * DAY) / SECOND, "during");
    await walkLists(world.deps, { resources: ["charges"] });
    expect(await coveredCharges()).toEqual([[-48 * 3_600, (40 * DAY) / SECOND - 60]]);
    expect(await idsOf(world.pool, "charge")).toEqual([id]);
  });

  test("behavior: coverage on demand reads both lists and only what lacks", async () => {
    await walkCharges(-600, -300);
    world.sandbox.control.clearRequests();
    const range = { from: at(-600), to: at(-60) };
    const proof = await ensureCoverage(world.deps, { scope: PLATFORM_SCOPE, ...range });
    expect(proof).toEqual({ ok: true, failed: [], covered: true });
    expect(world.sandbox.control.counts).toEqual({
      "GET /v1/charges": 1,
      "GET /v1/payment_intents": 1,
    });
    const open = await ensureCoverage(world.deps, { scope: PLATFORM_SCOPE, ...range, to: at(0) });
    expect(open).toMatchObject({ ok: true, covered: false });
  });
});

async function insertIntent(id: string, state: string, offsetMs: number): Promise<void> {
  await world.pool.query(
    `insert into tallyd.intent (intent_id, account_id, rail, scope, amount, currency, state,
                                raw_state, created_at, updated_at, row_hash, first_seen_at, seen_at)
     values ($1, 'a', 'stripe', $2, 100, 'usd', $3, $3, $4, $4, 'h', $4, $4)`,
    [id, PLATFORM_SCOPE, state, new Date(T + offsetMs)],
  );
}
