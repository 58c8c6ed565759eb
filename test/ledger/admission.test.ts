/** Goal: of any number of workers exactly one sends, and the others hear what became of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import type { Payment } from "../../src/ledger/ledger.ts";
import { LedgerError } from "../../src/ledger/ledger.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());

const TWENTY = Array.from({ length: 20 });
const WAIT = { timeout: 20_000 };

describe.each(["seed", "own"] as const)("on the table %s", (table) => {
  beforeEach(async () => {
    await world.fresh(table);
    await world.mint("inv-1");
  });

  it("default: twenty at once send once; the others are told that it is in progress", async () => {
    let refused = 0;
    const onStep = async (step: string): Promise<void> => {
      if (step === "answered") await expect.poll(() => refused, WAIT).toBe(19);
    };
    const all = await Promise.allSettled(
      TWENTY.map(() =>
        world.pay("inv-1", { onStep }).catch((error: unknown) => {
          refused += 1;
          throw error;
        }),
      ),
    );
    const paid = all.filter((one) => one.status === "fulfilled");
    const told = all.flatMap((one) =>
      one.status === "rejected" && one.reason instanceof LedgerError ? [one.reason.code] : [],
    );
    expect(paid).toHaveLength(1);
    expect(told).toEqual(Array.from({ length: 19 }, () => "in_progress"));
    expect(world.keysSent()).toHaveLength(1);
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("behavior: those who wait get the same answer", async () => {
    world.fault({ kind: "delay", delayMs: 200 });
    const wait = { waitMs: 20_000 };
    const all = await Promise.all(TWENTY.map(() => world.pay("inv-1", {}, wait)));
    expect(all.filter((one: Payment) => !one.replayed)).toHaveLength(1);
    expect(new Set(all.map((one) => JSON.stringify(one.response))).size).toBe(1);
    expect(world.keysSent()).toHaveLength(1);
  });

  it("behavior: a wait ends when its time is up", async () => {
    world.fault({ kind: "delay", delayMs: 600 });
    const first = world.pay("inv-1");
    await expect.poll(async () => (await world.row("inv-1")).state, WAIT).toBe("in_flight");
    const refusal = await refusalOf(world.pay("inv-1", {}, { waitMs: 60 }));
    expect(refusal).toMatchObject({ code: "in_progress" });
    expect((await first).state).toBe("recorded");
  });

  it("behavior: twenty at once find out about a lost charge, and none pays again", async () => {
    world.fault({ kind: "lost_response", count: 2 });
    world.blind();
    await refusalOf(world.pay("inv-1"));
    const all = await Promise.all(TWENTY.map(() => world.pay("inv-1", {}, { waitMs: 9_000 })));
    expect(new Set(all.map((one) => one.chargeId)).size).toBe(1);
    expect(await world.charges()).toEqual(["500 usd"]);
    expect(new Set(world.keysSent()).size).toBe(1);
  });

  it("behavior: a worker that slept before it sent does not send", async () => {
    const limits = { holdMs: 20 };
    const slept = world.pay("inv-1", {
      limits,
      onStep: async (step) => {
        if (step === "admitted") await new Promise((resolve) => setTimeout(resolve, 60));
      },
    });
    expect(await refusalOf(slept)).toMatchObject({ code: "retryable" });
    expect(world.keysSent()).toEqual([]);
    expect((await world.row("inv-1")).state).toBe("failed_retryable");
    expect((await world.pay("inv-1")).state).toBe("recorded");
  });

  it("behavior: a success is recorded although others gave the worker up", async () => {
    const paid = await world.pay("inv-1", {
      onStep: async (step) => {
        if (step !== "answered") return;
        await world.pool.query(
          `update payment_intents
              set state = 'reconciling',
                  updated_at = now()
            where state = 'in_flight'`,
        );
      },
    });
    expect(paid).toMatchObject({ state: "recorded", replayed: false });
    expect((await world.row("inv-1")).state).toBe("recorded");
  });

  it("behavior: recorded by others with the same charge in the meantime is a replay", async () => {
    const paid = await world.pay("inv-1", {
      onStep: async (step) => {
        if (step === "answered") {
          await world.pool.query("update payment_intents set updated_at = '2020-01-01'");
          world.advance(10 * 60_000);
          await world.pay("inv-1");
        }
      },
    });
    expect(paid.replayed).toBe(true);
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("error: recorded by others with another charge is told loudly", async () => {
    const paying = world.pay("inv-1", {
      onStep: async (step) => {
        if (step !== "answered") return;
        await world.pool.query("update payment_intents set state = 'recorded', charge_id = 'pi_x'");
      },
    });
    expect(await refusalOf(paying)).toMatchObject({ code: "conflict" });
    expect((await world.row("inv-1")).chargeId).toBe("pi_x");
  });

  it("error: a state that is not the ledger's is not touched", async () => {
    await world.pool.query("update payment_intents set state = 'PAID'");
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "invalid" });
    expect(world.keysSent()).toEqual([]);
  });

  it.each([
    [{ timeoutMs: 200_000 }, "inFlightMs is 300000: at least 415000 is allowed"],
    [{ settleMs: 0 }, "settleMs is 0: at least 80000 is allowed"],
    [{ horizonMs: 25 * 3_600_000 }, "horizonMs is 90000000: less than 86400000 is allowed"],
    [{ horizonMs: Number.NaN }, "horizonMs is NaN: a number of milliseconds"],
    [{ holdMs: -1 }, "holdMs is -1: a number of milliseconds"],
  ])("error: limits under which it could pay twice: %o", async (limits, fault) => {
    const refusal = await refusalOf(world.pay("inv-1", { limits }));
    expect(refusal).toMatchObject({ code: "invalid" });
    expect(refusal.message).toContain(fault);
    expect(world.keysSent()).toEqual([]);
  });
});
