/**
 * Goal: the tests that the design of the ledger comes with, on its table as printed and on tallyd's
 * richer one.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());

describe.each(["seed", "own"] as const)("on the table %s", (table) => {
  beforeEach(() => world.fresh(table));

  it("default: the same intent twice is one charge and the same answer", async () => {
    const { intent } = await world.mint("inv-1");
    const first = await world.pay("inv-1");
    const second = await world.pay("inv-1");
    expect(first).toMatchObject({ state: "recorded", replayed: false });
    expect(second).toEqual({ ...first, replayed: true });
    expect(first.chargeId).toMatch(/^pi_/);
    expect(await world.charges()).toEqual(["500 usd"]);
    expect(world.keysSent()).toEqual([intent.idempotencyKey]);
  });

  it("behavior: a lost answer is looked up and found, with one charge", async () => {
    await world.mint("inv-2");
    // The official client tries a closed connection again by itself.
    world.fault({ kind: "lost_response", count: 2 });
    const paid = await world.pay("inv-2");
    expect(paid.state).toBe("recorded");
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("behavior: what never arrived is sent again with the same key, once that is known", async () => {
    const { intent } = await world.mint("inv-2");
    world.fault({ kind: "error_before", status: 502 });
    expect(await refusalOf(world.pay("inv-2"))).toMatchObject({ code: "unknown" });
    expect((await world.row("inv-2")).state).toBe("reconciling");
    expect(await refusalOf(world.pay("inv-2"))).toMatchObject({ code: "unknown" });
    expect(world.keysSent()).toHaveLength(1);
    world.advance(7 * 60_000);
    expect((await world.pay("inv-2")).state).toBe("recorded");
    expect(world.keysSent()).toEqual([intent.idempotencyKey, intent.idempotencyKey]);
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("error: a row that was changed after it was paid raises loudly", async () => {
    await world.mint("inv-3");
    await world.pay("inv-3");
    await world.pool.query("update payment_intents set amount = 999 where intent_id = 'inv-3'");
    expect(await refusalOf(world.pay("inv-3"))).toMatchObject({ code: "conflict" });
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("behavior: a new intent gets a new key", async () => {
    const a = await world.mint("inv-4");
    const b = await world.mint("inv-5");
    expect(a.intent.idempotencyKey).not.toBe(b.intent.idempotencyKey);
  });
});
