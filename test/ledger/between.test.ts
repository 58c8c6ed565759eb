/**
 * Goal: what stands between the ledger and the provider, or between it and its table, and answers
 * or fails in their place, is never taken for a result.
 */
import type { EventEmitter } from "node:events";

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { executePayment } from "../../src/ledger/ledger.ts";
import type { Db } from "../../src/ledger/ledger.ts";
import { openPool } from "../../src/store/pool.ts";
import { clientOf } from "./client.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.fresh("own");
  await world.mint("inv-1");
});

describe("JSON of a proxy, which the SDK takes for an answer", () => {
  const page = { message: "Service Unavailable" };

  it.each([200, 502, 503])(
    "behavior: with status %i it is in doubt, and paid once",
    async (status) => {
      world.fault({ kind: "respond", status, body: page });
      world.blind();
      const refusal = await refusalOf(world.pay("inv-1"));
      expect(refusal).toMatchObject({ code: "unknown" });
      expect(refusal.message).toContain(`the answer ${String(status)} is no object of Stripe's`);
      expect((await world.row("inv-1")).state).toBe("reconciling");
      world.advance(7 * 60_000);
      expect((await world.pay("inv-1")).state).toBe("recorded");
      expect(await world.charges()).toEqual(["500 usd"]);
    },
  );

  it("behavior: in the place of a payment that is looked up it changes nothing", async () => {
    await world.mint("inv-2", { request: { payment_method: "pm_usBankAccount_success" } });
    const { response } = await refusalOf(world.pay("inv-2"));
    const before = await world.row("inv-2");
    world.stripe.control.fault({ kind: "respond", method: "GET", status: 200, body: page });
    expect(await refusalOf(world.pay("inv-2"))).toMatchObject({ code: "unknown" });
    expect(await world.row("inv-2")).toMatchObject({ state: "in_flight", version: before.version });
    world.stripe.control.settle(response?.["id"] as string, "succeeded");
    expect((await world.pay("inv-2")).state).toBe("recorded");
  });
});

it("behavior: many payments at once by one client listen to it once", async () => {
  const stripe = clientOf(world.stripe.url);
  const emitter = (stripe as unknown as { readonly _emitter: EventEmitter })._emitter;
  let most = 0;
  emitter.on("newListener", () => {
    most = Math.max(most, emitter.listenerCount("request") + 1);
  });
  const ids = Array.from({ length: 15 }, (_, index) => `many-${String(index)}`);
  for (const id of ids) await world.mint(id);
  world.fault({ kind: "delay", delayMs: 300, count: ids.length });
  await Promise.all(ids.map((id) => world.pay(id, { stripe })));
  expect(most).toBe(1);
  expect(emitter.listenerCount("request")).toBe(0);
  expect(await world.charges()).toHaveLength(ids.length);
});

describe("the database", () => {
  /** A pool whose statements fail as a lost connection does, where `fails` says so. */
  function losing(fails: (text: string, values: readonly unknown[]) => boolean): Db {
    return {
      query: (text, values = []) =>
        fails(text, values)
          ? Promise.reject(new Error("Connection terminated unexpectedly"))
          : world.pool.query(text, values),
    };
  }

  it("behavior: lost after the charge it is a doubt, and the charge is found", async () => {
    const db = losing((text, values) => text.startsWith("update") && values.includes("recorded"));
    const refusal = await refusalOf(world.pay("inv-1", { db }));
    expect(refusal).toMatchObject({ code: "unknown", intentId: "inv-1", retryAfterMs: 5_000 });
    expect(refusal.message).toContain("Connection terminated unexpectedly");
    world.advance(6 * 60_000);
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(await world.charges()).toEqual(["500 usd"]);
    expect(world.keysSent()).toHaveLength(1);
  });

  it("behavior: lost behind the admission, nothing is sent until it was looked up", async () => {
    let lost = false;
    const db: Db = {
      query: async (text, values) => {
        const done = await world.pool.query(text, values);
        if (!values?.includes("in_flight") || lost) return done;
        lost = true;
        throw new Error("Connection terminated unexpectedly");
      },
    };
    expect(await refusalOf(world.pay("inv-1", { db }))).toMatchObject({ code: "unknown" });
    expect(world.keysSent()).toEqual([]);
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "in_progress" });
    world.advance(6 * 60_000);
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "unknown" });
    world.advance(7 * 60_000);
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(world.keysSent()).toHaveLength(1);
  });

  it("error: a table that is not there will not come by waiting", async () => {
    const refusal = await refusalOf(world.pay("inv-1", { table: "nowhere" }));
    expect(refusal).toMatchObject({ code: "unknown", retryAfterMs: null });
    expect(refusal.message).toContain('relation "nowhere" does not exist');
  });

  it("behavior: a statement that gave way to another one (serializable) is made again", async () => {
    const url = new URL(world.url);
    url.searchParams.set("options", "-c default_transaction_isolation=serializable");
    const pool = openPool({ url: url.href, applicationName: "strict", max: 2 });
    const other = await world.pool.connect();
    try {
      await other.query("begin");
      await other.query("update payment_intents set reference = 'order-7'");
      const paying = executePayment({ ...world.deps, db: pool }, "inv-1");
      const waiting = "select from pg_locks l where not l.granted";
      await expect.poll(async () => (await world.pool.query(waiting)).rowCount).toBe(1);
      await other.query("commit");
      expect((await paying).state).toBe("recorded");
      expect(world.keysSent()).toHaveLength(1);
    } finally {
      other.release();
      await pool.end();
    }
  });
});
