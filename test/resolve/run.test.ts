// Goal: the runner around the decision: modes, races, the ladder, records without repeats.
// Method: real rows, a Stripe over HTTP, and the steps of the daemon; races are made with a second
// writer that acts right before the resolver's own write.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { fastUntilQuiet, placeAll } from "../../src/daemon/fast-path.ts";
import { resolverDeps } from "../../src/daemon/resolver-deps.ts";
import { readLocal, sweepStripeEvents, walkStripeLists } from "../../src/daemon/steps.ts";
import type { ResolveDeps } from "../../src/resolve/deps.ts";
import { resolveDue, wake } from "../../src/resolve/run.ts";
import type { ResolveResult } from "../../src/resolve/run.ts";
import { fingerprintFit } from "../../src/sources/local/fingerprint.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import type { ResolverWorld } from "./resolver-world.ts";
import { HOUR, MINUTE, openResolverWorld } from "./resolver-world.ts";

let db: TestDb;
let opened: ResolverWorld | undefined;
const { signal } = new AbortController();

async function world(env: Readonly<Record<string, string>> = {}): Promise<ResolverWorld> {
  opened = await openResolverWorld(db, env);
  return opened;
}

beforeAll(async () => {
  db = await createTestDb();
});
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});
afterAll(() => db.close());

/** Reads both sides and places; what a resolver run finds in the daemon. */
async function read(w: ResolverWorld): Promise<void> {
  await readLocal(w.tallyd, "sweep");
  await walkStripeLists(w.tallyd, "proof", signal);
  await placeAll(w.tallyd, signal);
}

async function deps(w: ResolverWorld, change: Partial<ResolveDeps> = {}): Promise<ResolveDeps> {
  const place = async (): Promise<void> => {
    await placeAll(w.tallyd, signal);
  };
  const local = await w.tallyd.local.reader();
  return { ...resolverDeps(w.tallyd, { local, place }), ...change };
}

async function run(
  w: ResolverWorld,
  input: { readonly all?: boolean; readonly change?: Partial<ResolveDeps> } = {},
): Promise<ResolveResult> {
  const { all = false, change = {} } = input;
  return resolveDue(await deps(w, change), { all, limit: 100, signal });
}

function pay(w: ResolverWorld, intentId: string, ageMs = HOUR): void {
  w.stripe.control.seed.paymentIntent({
    id: `pi_${intentId}`,
    amount: 1000n,
    created: w.at(ageMs),
    metadata: { intent_id: intentId },
    charge: { id: `ch_${intentId}` },
  });
}

interface LadderLine {
  readonly intent_id: string;
  readonly rung: number;
  readonly ended: boolean;
  readonly waits: boolean;
}

async function ladder(w: ResolverWorld): Promise<LadderLine[]> {
  const found = await w.db.pool.query<LadderLine>(
    `select intent_id, rung, ended_at is not null as ended,
            next_at > clock_timestamp() as waits
       from tallyd.ladder
      order by intent_id`,
  );
  return found.rows;
}

describe("write", () => {
  test("default: state, charge, response and fingerprint, and nothing is left to do", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    expect(await run(w)).toMatchObject({ looked: 1, applied: 1, failed: [] });
    const row = await w.teamRow("L1");
    expect(row).toMatchObject({
      state: "recorded",
      charge_id: "ch_L1",
      response_json: {
        id: "ch_L1",
        object: "charge",
        amount: 1000,
        currency: "usd",
        status: "succeeded",
        payment_intent: "pi_L1",
        latest_charge: "ch_L1",
        resolved_by: "tallyd",
      },
    });
    const fields = { intentId: "L1", amount: 1000n, currency: "usd" };
    expect(fingerprintFit(row.fingerprint ?? "", fields)).not.toBeNull();
    expect(await ladder(w)).toEqual([]);
    const mirrored = await w.db.pool.query("select state from tallyd.intent");
    expect(mirrored.rows).toEqual([{ state: "recorded" }]);
    expect(await run(w, { all: true })).toMatchObject({ looked: 0, applied: 0 });
  });

  test("behavior: the charge is spelled as the team's other rows spell theirs", async () => {
    const w = await world();
    await w.row({ id: "L0", state: "recorded", amount: 1000, charge: "pi_L0", ageMs: HOUR });
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L0");
    pay(w, "L1");
    await read(w);
    await run(w);
    expect(await w.teamRow("L1")).toMatchObject({
      charge_id: "pi_L1",
      response_json: { object: "payment_intent", latest_charge: "ch_L1" },
    });
  });

  test("behavior: 20 resolvers at once write once", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    const results = await Promise.all(Array.from({ length: 20 }, () => run(w)));
    expect(results.reduce((sum, result) => sum + result.applied, 0)).toBe(1);
    expect(results.filter((result) => result.busy).length).toBeGreaterThan(0);
    expect(await w.resolutions("L1")).toHaveLength(1);
  });

  test("error: the team's own writer was faster: its row stays", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    const { local } = await deps(w);
    const raced = {
      ...local,
      write: async (write: Parameters<typeof local.write>[0]) => {
        await w.db.pool.query(
          "update public.payment_intents set state = 'recorded', charge_id = 'ch_own'",
        );
        return local.write(write);
      },
    };
    expect(await run(w, { change: { local: raced } })).toMatchObject({ applied: 0, moved: 1 });
    expect(await w.teamRow("L1")).toMatchObject({ charge_id: "ch_own", response_json: null });
    expect(await w.resolutions("L1")).toMatchObject([{ outcome: "lost_race" }]);
    // Looked at again at once: the row is no candidate any more.
    expect(await run(w)).toMatchObject({ looked: 0, moved: 1 });
    expect(await ladder(w)).toEqual([]);
  });

  test("error: a row that moved before the look is left alone, early", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    await w.db.pool.query("update public.payment_intents set state = 'failed_terminal'");
    expect(await run(w)).toMatchObject({ looked: 0, moved: 1 });
    expect(await w.resolutions("L1")).toEqual([]);
  });

  test("error: a table that refuses is told once and keeps its row", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    await w.db.pool.query("alter table public.payment_intents add check (state <> 'recorded')");
    expect(await run(w)).toMatchObject({ refused: 1 });
    expect(await run(w, { all: true })).toMatchObject({ refused: 1 });
    expect(await w.resolutions("L1")).toMatchObject([{ outcome: "refused", decision: "recorded" }]);
    expect((await w.teamRow("L1")).state).toBe("reconciling");
  });
});

describe("suggest and off", () => {
  test("default: suggest says it once and touches nothing", async () => {
    const w = await world({ RESOLVE: "suggest" });
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    expect(await run(w)).toMatchObject({ suggested: 1, applied: 0 });
    expect(await run(w, { all: true })).toMatchObject({ suggested: 1 });
    expect(await w.resolutions("L1")).toMatchObject([
      { decision: "recorded", outcome: "suggested" },
    ]);
    expect(await w.teamRow("L1")).toMatchObject({ state: "reconciling", charge_id: null });
  });

  test("behavior: off looks at nothing", async () => {
    const w = await world({ RESOLVE: "off" });
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    pay(w, "L1");
    await read(w);
    w.stripe.control.clearRequests();
    expect(await run(w, { all: true })).toMatchObject({ looked: 0, suggested: 0 });
    expect(await w.resolutions("L1")).toEqual([]);
    expect(w.stripe.control.requests).toEqual([]);
  });
});

describe("the ladder", () => {
  test("default: between two rungs a row is left alone; once looks all the same", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: 2 * MINUTE });
    await read(w);
    expect(await run(w)).toMatchObject({ looked: 1, unproven: 1 });
    expect(await ladder(w)).toMatchObject([{ rung: 1, ended: false, waits: true }]);
    expect(await run(w)).toMatchObject({ looked: 0 });
    expect(await run(w, { all: true })).toMatchObject({ looked: 1, unproven: 1 });
    // The same answer again is no new record.
    expect(await w.resolutions("L1")).toHaveLength(1);
  });

  test("behavior: a new fact wakes the row, and settles it", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: 2 * MINUTE });
    await read(w);
    await run(w);
    pay(w, "L1", 2 * MINUTE);
    // The event brings the payment, placing it touches the row's operation.
    await sweepStripeEvents(w.tallyd, signal);
    await fastUntilQuiet(w.tallyd, signal);
    expect(await run(w)).toMatchObject({ looked: 1, applied: 1 });
    expect((await w.teamRow("L1")).state).toBe("recorded");
  });

  test("behavior: an ended ladder stays ended when it is woken without news", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: 30 * HOUR });
    await w.row({ id: "L2", state: "recorded", amount: 1000, charge: "ch_x", ageMs: 30 * HOUR });
    w.stripe.control.seed.paymentIntent({
      amount: 1000n,
      created: w.at(30 * HOUR),
      charge: { id: "ch_x" },
    });
    await read(w);
    await run(w);
    expect(await ladder(w)).toMatchObject([{ rung: 1, ended: true }]);
    const { rules } = w.tallyd.settings;
    const now = await w.tallyd.now();
    await wake(w.db.pool, { operationIds: ["intent:L1"], rules, now });
    expect(await ladder(w)).toMatchObject([{ ended: true, waits: false }]);
    expect(await run(w)).toMatchObject({ looked: 1, unproven: 1 });
    expect(await ladder(w)).toMatchObject([{ rung: 2, ended: true, waits: true }]);
    expect(await w.resolutions("L1")).toHaveLength(1);
  });

  test("behavior: passes come to rest: a second one finds nothing new to say", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: 30 * HOUR });
    await w.row({ id: "L2", state: "in_flight", amount: 1000, ageMs: HOUR });
    w.stripe.control.seed.paymentIntent({ amount: 700n, created: w.at(30 * HOUR) });
    await w.pass();
    const first = await w.incidents();
    expect(first).toEqual(["orphan_charge", "stuck_in_flight", "stuck_reconciling"]);
    await w.pass();
    expect(await w.incidents()).toEqual(first);
    expect(await w.resolutions("L1")).toHaveLength(1);
    expect(await w.resolutions("L2")).toHaveLength(1);
  });

  test("behavior: a row in flight is no candidate while a call may be under way", async () => {
    const w = await world();
    await w.row({ id: "young", state: "in_flight", amount: 1000, ageMs: MINUTE });
    await w.row({ id: "paid", state: "in_flight", amount: 1000, ageMs: 7 * MINUTE });
    await w.row({ id: "open", state: "in_flight", amount: 1000, ageMs: 7 * MINUTE });
    await w.row({ id: "minted", state: "key_minted", amount: 1000, ageMs: HOUR });
    for (const id of ["young", "paid", "minted"]) pay(w, id, 2 * MINUTE);
    await read(w);
    await run(w, { all: true });
    expect((await w.teamRow("young")).state).toBe("in_flight");
    expect((await w.teamRow("paid")).state).toBe("recorded");
    expect((await w.teamRow("open")).state).toBe("in_flight");
    // A worker that picks this key up would pay again.
    expect((await w.teamRow("minted")).state).toBe("recorded");
    expect(await ladder(w)).toEqual([]);
  });
});

describe("reads", () => {
  test("default: many rows of one time share one walk and one look", async () => {
    const w = await world();
    for (let index = 0; index < 30; index += 1) {
      const id = `L${String(index)}`;
      await w.row({ id, state: "reconciling", amount: 1000, ageMs: 30 * HOUR });
    }
    await read(w);
    w.stripe.control.clearRequests();
    expect(await run(w)).toMatchObject({ applied: 30 });
    expect(w.stripe.control.requests.length).toBeLessThanOrEqual(2);
  });

  test("behavior: nothing but reads reaches Stripe, and never a search", async () => {
    const w = await world();
    await w.row({ id: "L1", state: "reconciling", amount: 1000, ageMs: HOUR });
    await w.row({ id: "L2", state: "reconciling", amount: 1000, charge: "pi_L2", ageMs: HOUR });
    pay(w, "L2");
    await w.pass();
    const routes = w.stripe.control.requests.map((entry) => `${entry.method} ${entry.path}`);
    expect(routes.length).toBeGreaterThan(0);
    expect(routes.filter((route) => !route.startsWith("GET ") || route.includes("search"))).toEqual(
      [],
    );
  });
});
