/** Goal: refunds and captures are operations of their own: own row, own key, done at most once. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import type { ExecuteDeps, MintInput } from "../../src/ledger/ledger.ts";
import { clientOf } from "./client.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());

const client = () => clientOf(world.stripe.url);

async function refunded(): Promise<readonly number[]> {
  return (await client().refunds.list({ limit: 100 })).data.map((one) => one.amount);
}

describe.each(["seed", "own"] as const)("on the table %s", (table) => {
  let payment: string;

  /** Where the parameters of the call are: in the row, or with the caller. */
  function about(params: Record<string, string>) {
    const minted: Partial<MintInput> = table === "own" ? { request: params } : {};
    const paying: Partial<ExecuteDeps> = table === "own" ? {} : { paramsOf: () => params };
    return { minted, paying };
  }

  beforeEach(async () => {
    await world.fresh(table);
    await world.mint("inv-1");
    payment = (await world.pay("inv-1")).chargeId!;
  });

  it("default: a refund has a key of its own and happens once", async () => {
    const { minted, paying } = about({ payment_intent: payment });
    const { intent } = await world.mint("inv-1-refund", {
      operation: "refund",
      amount: 200n,
      ...minted,
    });
    expect(intent).toMatchObject({ operation: "refund" });
    expect(intent.idempotencyKey).toMatch(/^refund_/);
    const first = await world.pay("inv-1-refund", paying);
    expect(first.chargeId).toMatch(/^re_/);
    expect(first.response).toMatchObject({
      object: "refund",
      amount: 200,
      payment_intent: payment,
    });
    expect(await world.pay("inv-1-refund", paying)).toEqual({ ...first, replayed: true });
    expect(await refunded()).toEqual([200]);
  });

  it("behavior: two refunds of one charge are two operations", async () => {
    const { minted, paying } = about({ payment_intent: payment });
    for (const id of ["a", "b"]) {
      await world.mint(id, { operation: "refund", amount: 100n, ...minted });
      await world.pay(id, paying);
    }
    expect(await refunded()).toEqual([100, 100]);
  });

  it("behavior: a refund whose answer is lost is found by its mark", async () => {
    const { minted, paying } = about({ payment_intent: payment });
    await world.mint("a", { operation: "refund", amount: 100n, ...minted });
    await world.mint("b", { operation: "refund", amount: 100n, ...minted });
    await world.pay("a", paying);
    world.fault({ kind: "lost_response", path: "/v1/refunds", count: 2 });
    world.blind();
    expect(await refusalOf(world.pay("b", paying))).toMatchObject({ code: "unknown" });
    expect((await world.pay("b", paying)).state).toBe("recorded");
    expect((await world.row("b")).chargeId).not.toBe((await world.row("a")).chargeId);
    expect(await refunded()).toEqual([100, 100]);
  });

  it("behavior: a refund that never arrived is sent again with its key", async () => {
    const { minted, paying } = about({ payment_intent: payment });
    await world.mint("a", { operation: "refund", amount: 100n, ...minted });
    world.fault({ kind: "error_before", path: "/v1/refunds" });
    expect(await refusalOf(world.pay("a", paying))).toMatchObject({ code: "unknown" });
    world.advance(7 * 60_000);
    expect((await world.pay("a", paying)).state).toBe("recorded");
    expect(new Set(world.keysSent().slice(1)).size).toBe(1);
    expect(await refunded()).toEqual([100]);
  });

  it("behavior: what somebody else has refunded already is final, not repeated", async () => {
    await client().refunds.create({ payment_intent: payment });
    const { minted, paying } = about({ payment_intent: payment });
    await world.mint("a", { operation: "refund", ...minted });
    const refusal = await refusalOf(world.pay("a", paying));
    expect(refusal).toMatchObject({
      code: "failed",
      response: { error: { code: "charge_already_refunded" } },
    });
    expect((await world.row("a")).state).toBe("failed_terminal");
    expect(await refunded()).toEqual([500]);
  });

  it("behavior: an authorization is captured once, by an operation of its own", async () => {
    const hold = { payment_method: "pm_card_visa", capture_method: "manual" };
    const held = about(hold);
    await world.mint("inv-2", held.minted);
    const authorized = await world.pay("inv-2", held.paying);
    expect(authorized.response).toMatchObject({ status: "requires_capture" });
    const { minted, paying } = about({ payment_intent: authorized.chargeId! });
    const { intent } = await world.mint("inv-2-capture", {
      ...{ operation: "capture", amount: 300n, ...minted },
    });
    expect(intent.idempotencyKey).toMatch(/^capture_/);
    world.fault({ kind: "lost_response", path: "*/capture", count: 2 });
    world.blind();
    expect(await refusalOf(world.pay("inv-2-capture", paying))).toMatchObject({ code: "unknown" });
    const captured = await world.pay("inv-2-capture", paying);
    expect(captured.response).toMatchObject({ status: "succeeded", amount_received: 300 });
    expect(await world.pay("inv-2-capture", paying)).toEqual({ ...captured, replayed: true });
    // The mark of the charge stands.
    const [made] = (await client().paymentIntents.list()).data;
    expect(made?.metadata).toEqual({ intent_id: "inv-2" });
  });

  it("behavior: a capture of what was canceled is final", async () => {
    const held = about({ payment_method: "pm_card_visa", capture_method: "manual" });
    await world.mint("inv-2", held.minted);
    const { chargeId } = await world.pay("inv-2", held.paying);
    await client().paymentIntents.cancel(chargeId!);
    const { minted, paying } = about({ payment_intent: chargeId! });
    await world.mint("c", { operation: "capture", ...minted });
    expect(await refusalOf(world.pay("c", paying))).toMatchObject({ code: "unknown" });
    world.advance(7 * 60_000);
    expect(await refusalOf(world.pay("c", paying))).toMatchObject({ code: "failed" });
  });

  it("behavior: a payment captured in part by somebody is no proof that this one did not run", async () => {
    const held = about({ payment_method: "pm_card_visa", capture_method: "manual" });
    await world.mint("inv-2", held.minted);
    const { chargeId, response } = await world.pay("inv-2", held.paying);
    const { minted, paying } = about({ payment_intent: chargeId! });
    await world.mint("c", { operation: "capture", ...minted });
    world.fault({ kind: "error_before", path: "*/capture" });
    const open = { ...response, amount: 500, amount_received: 300, amount_capturable: 200 };
    world.stripe.control.fault({
      kind: "respond",
      method: "GET",
      status: 200,
      body: open,
      count: 9,
    });
    expect(await refusalOf(world.pay("c", paying))).toMatchObject({ code: "unknown" });
    world.advance(25 * 3_600_000);
    expect(await refusalOf(world.pay("c", paying))).toMatchObject({ code: "unknown" });
    expect((await world.row("c")).state).toBe("reconciling");
  });

  it("error: a capture in parts", async () => {
    const params = { payment_intent: payment };
    await world.mint("c", { operation: "capture", ...about(params).minted });
    const paramsOf = () => ({ ...params, final_capture: false });
    const refusal = await refusalOf(world.pay("c", { paramsOf }));
    expect(refusal).toMatchObject({ code: "invalid" });
    expect(refusal.message).toContain("final_capture");
  });

  it("error: a refund of nothing", async () => {
    await world.mint("a", { operation: "refund", ...about({}).minted });
    const refusal = await refusalOf(world.pay("a", about({}).paying));
    expect(refusal).toMatchObject({ code: "invalid" });
    expect((await world.row("a")).state).toBe("key_minted");
  });
});
