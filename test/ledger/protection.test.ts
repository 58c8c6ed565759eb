/** Goal: what to ask before another attempt has clear answers, and the ledger keeps them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { keyProtection, keyReusable, nextStep } from "../../src/ledger/ledger.ts";
import type { LedgerIntent } from "../../src/ledger/ledger.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

const HOUR_MS = 3_600_000;

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());

let intent: LedgerIntent;

beforeEach(async () => {
  await world.fresh("own");
  intent = (await world.mint("inv-1")).intent;
});

describe("keyProtection", () => {
  it("default: twenty hours from the minting on", async () => {
    expect(keyProtection(intent)).toMatchObject({ protects: true });
    expect(keyProtection(intent).leftMs).toBeGreaterThan(20 * HOUR_MS - 10_000);
    expect(keyProtection(intent).until.getTime()).toBe(
      Math.round(intent.createdAt * 1_000) + 20 * HOUR_MS,
    );
    world.advance(21 * HOUR_MS);
    expect(keyProtection(await world.row("inv-1"))).toMatchObject({ protects: false, leftMs: 0 });
  });

  it("behavior: a provider that keeps keys longer is a limit of its own", () => {
    const thirtyDays = { horizonMs: 29 * 24 * HOUR_MS };
    expect(keyProtection(intent, thirtyDays).leftMs).toBeGreaterThan(28 * 24 * HOUR_MS);
  });
});

describe("keyReusable", () => {
  it("default", () => {
    expect(keyReusable(intent, intent)).toMatchObject({ reusable: true });
  });

  it.each([
    [{ idempotencyKey: "pay_other" }, "other_key"],
    [{ intentId: "inv-2" }, "other_operation"],
    [{ accountId: "acct-8" }, "other_operation"],
    [{ operation: "refund" }, "other_operation"],
    [{ amount: 501n }, "other_parameters"],
    [{ currency: "eur" }, "other_parameters"],
  ] as const)("behavior: %o is %s", (change, reason) => {
    expect(keyReusable(intent, { ...intent, ...change })).toMatchObject({
      reusable: false,
      reason,
    });
  });

  it("behavior: the spelling of a currency is not its meaning", () => {
    expect(keyReusable(intent, { ...intent, currency: "USD" }).reusable).toBe(true);
  });

  it("behavior: a paid one is finished, an old one expired, one in doubt unknown", async () => {
    world.fault({ kind: "lost_response", count: 2 });
    world.blind();
    await refusalOf(world.pay("inv-1"));
    const doubted = await world.row("inv-1");
    expect(keyReusable(doubted, doubted)).toMatchObject({ reason: "unknown" });
    await world.pay("inv-1");
    const paid = await world.row("inv-1");
    expect(keyReusable(paid, paid)).toMatchObject({ reason: "finished" });
    await world.mint("inv-2");
    world.advance(21 * HOUR_MS);
    const old = await world.row("inv-2");
    expect(keyReusable(old, old)).toMatchObject({ reason: "expired" });
  });
});

describe("nextStep", () => {
  it("default", () => {
    expect(nextStep(intent)).toMatchObject({ do: "send_same_key" });
  });

  it("behavior: it says of each state what the ledger then does", async () => {
    const sent = (): number => world.keysSent().length;
    // Held by another worker, then abandoned by it.
    const died = world.pay("inv-1", {
      onStep: (step) => {
        if (step === "answered") throw new Error("killed");
      },
    });
    await expect(died).rejects.toThrow();
    expect(nextStep(await world.row("inv-1"))).toMatchObject({ do: "wait" });
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "in_progress" });
    world.advance(6 * 60_000);
    const abandoned = nextStep(await world.row("inv-1"));
    expect(abandoned.do === "look_up" && abandoned.look.join()).toContain("intent_id=inv-1");
    await world.pay("inv-1");
    expect(sent()).toBe(1);
    expect(nextStep(await world.row("inv-1"))).toMatchObject({ do: "replay" });
  });

  it("behavior: with the provider, in doubt, too old and failed", async () => {
    await world.mint("inv-2", { request: { payment_method: "pm_usBankAccount_success" } });
    const pending = await refusalOf(world.pay("inv-2"));
    expect(nextStep(await world.row("inv-2"))).toMatchObject({
      do: "look_up",
      look: [pending.response?.["id"], expect.any(String)],
    });
    await world.mint("inv-3", { request: { payment_method: "pm_card_chargeDeclined" } });
    await refusalOf(world.pay("inv-3"));
    expect(nextStep(await world.row("inv-3"))).toMatchObject({ do: "stop" });
    world.fault({ kind: "error_before" });
    await refusalOf(world.pay("inv-1"));
    expect(nextStep(await world.row("inv-1"))).toMatchObject({ do: "look_up" });
    await world.mint("inv-4");
    world.advance(21 * HOUR_MS);
    expect(nextStep(await world.row("inv-4"))).toMatchObject({ do: "look_up" });
  });
});
