/**
 * Goal: the hardening checklist of the ledger's design, one test per line, on its table as printed
 * and on tallyd's richer one.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { executePayment } from "../../src/ledger/ledger.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

const HOUR_MS = 3_600_000;
const DECLINED = { paramsOf: () => ({ payment_method: "pm_card_chargeDeclined" }) };

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());

describe.each(["seed", "own"] as const)("on the table %s", (table) => {
  beforeEach(() => world.fresh(table));

  it("behavior: the key is minted once per logical intent, never inside a retry path", async () => {
    const { intent, created } = await world.mint("inv-1");
    expect(created).toBe(true);
    const again = await Promise.all([1, 2, 3, 4].map(() => world.mint("inv-1")));
    expect(again.map((one) => one.created)).toEqual([false, false, false, false]);
    world.fault({ kind: "rate_limit", count: 3 });
    for (const attempt of [1, 2, 3]) {
      expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "retryable" });
      expect(world.keysSent()).toHaveLength(attempt);
    }
    await world.pay("inv-1");
    expect(new Set(world.keysSent())).toEqual(new Set([intent.idempotencyKey]));
    expect(world.keysSent()).toHaveLength(4);
  });

  it("behavior: the row with its key is committed before the first call", async () => {
    const client = await world.pool.connect();
    try {
      await client.query("begin");
      await client.query("create temporary table business (id text) on commit drop");
      const { mintIntent } = await import("../../src/ledger/ledger.ts");
      const money = { amount: 500n, currency: "usd" };
      await mintIntent(client, { intentId: "inv-1", accountId: "acct-9", ...money });
      // Others do not see it yet, and the client that does may not pay with it.
      expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "not_found" });
      const inside = executePayment({ ...world.deps, db: client }, "inv-1");
      expect(await refusalOf(inside)).toMatchObject({ code: "invalid" });
      expect(world.keysSent()).toEqual([]);
      await client.query("rollback");
      expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "not_found" });
    } finally {
      client.release();
    }
  });

  it("behavior: all retries read the key from durable state", async () => {
    await world.mint("inv-1");
    world.fault({ kind: "rate_limit" });
    await refusalOf(world.pay("inv-1"));
    const stored = await world.pool.query<{ idempotency_key: string }>(
      "select idempotency_key from payment_intents",
    );
    await world.pay("inv-1");
    expect(world.keysSent().at(-1)).toBe(stored.rows[0]!.idempotency_key);
  });

  it("behavior: the tool's signature exposes an intent id and nothing else", async () => {
    await world.mint("inv-1");
    const tool = (call: { intent_id: string }) => executePayment(world.deps, call.intent_id);
    expect((await tool({ intent_id: "inv-1" })).response).toMatchObject({ amount: 500 });
    // Whatever else is in the parameters, the row decides.
    const more = { paramsOf: () => ({ payment_method: "pm_card_visa", amount: 9 }) };
    await world.mint("inv-2");
    expect(await refusalOf(world.pay("inv-2", more))).toMatchObject({ code: "invalid" });
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("behavior: keys are scoped by account and operation, the payload is checked", async () => {
    const { intent } = await world.mint("inv-1");
    const other = { idempotencyKey: intent.idempotencyKey };
    const refund = world.mint("inv-1-refund", { ...other, operation: "refund" });
    expect(await refusalOf(refund)).toMatchObject({ code: "invalid" });
    expect(await refusalOf(world.mint("inv-2", other))).toMatchObject({ code: "conflict" });
    expect(await refusalOf(world.mint("inv-1", { amount: 501n }))).toMatchObject({
      code: "conflict",
      message: expect.stringContaining("another amount") as string,
    });
    for (const change of [{ currency: "eur" }, { accountId: "acct-8" }]) {
      expect(await refusalOf(world.mint("inv-1", change))).toMatchObject({ code: "conflict" });
    }
    await world.pay("inv-1");
    await world.pool.query("update payment_intents set currency = 'eur'");
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "conflict" });
  });

  it("behavior: declines are terminal, only network failures are tried again", async () => {
    await world.mint("inv-1", table === "own" ? { request: {} } : {});
    const first = await refusalOf(world.pay("inv-1", DECLINED));
    expect(first).toMatchObject({
      code: "failed",
      response: { error: { type: "card_error", decline_code: "generic_decline" } },
    });
    expect((await world.row("inv-1")).state).toBe("failed_terminal");
    const second = await refusalOf(world.pay("inv-1"));
    expect(second).toMatchObject({ code: "failed", response: first.response });
    expect(world.keysSent()).toHaveLength(1);
    expect(await world.charges()).toEqual([]);
  });

  it("behavior: a time-out in flight leads to a look-up, not to a new charge", async () => {
    await world.mint("inv-1");
    // A worker that died after its charge: the row says in_flight, and nobody will change it.
    const died = world.pay("inv-1", {
      onStep: (step) => {
        if (step === "answered") throw new Error("killed");
      },
    });
    await expect(died).rejects.toThrow("killed");
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "in_progress" });
    world.advance(6 * 60_000);
    expect(await world.pay("inv-1")).toMatchObject({ state: "recorded", replayed: false });
    expect(world.keysSent()).toHaveLength(1);
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("behavior: the retry horizon respects the replay window of the provider", async () => {
    const { intent } = await world.mint("inv-1");
    world.fault({ kind: "rate_limit" });
    await refusalOf(world.pay("inv-1"));
    world.advance(19 * HOUR_MS);
    world.fault({ kind: "rate_limit" });
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "retryable" });
    world.advance(2 * HOUR_MS);
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({
      code: "failed",
      response: { error: { code: "key_expired" } },
    });
    expect(world.keysSent()).toEqual([intent.idempotencyKey, intent.idempotencyKey]);
  });

  it("behavior: past the horizon a charge is found before anything is given up", async () => {
    await world.mint("inv-1");
    const lost = { kind: "lost_response", count: 2 } as const;
    world.fault(lost);
    world.blind();
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "unknown" });
    world.advance(30 * HOUR_MS);
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(await world.charges()).toEqual(["500 usd"]);
  });
});
