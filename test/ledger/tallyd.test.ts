/**
 * Goal: tallyd, run as a user runs it over what the ledger wrote, has nothing to say; over what a
 * naive writer did, it has.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { LedgerError, executePayment, mintIntent } from "../../src/ledger/ledger.ts";
import type { ExecuteDeps, JsonObject, MintInput } from "../../src/ledger/ledger.ts";
import { withTx } from "../../src/store/tx.ts";
import { openE2e, theOpen } from "../e2e/world.ts";
import type { E2e } from "../e2e/world.ts";
import { clientOf } from "./client.ts";

let world: E2e;

beforeAll(async () => {
  world = await openE2e();
});
afterAll(() => world.close());

// Captures and refunds in a table that does not tell them apart: their keys do.
const SEED_TABLE = {
  intents: {
    table: "payment_intents",
    columns: {
      ...{ intentId: "intent_id", accountId: "account_id", amount: "amount", currency: "currency" },
      ...{ idempotencyKey: "idempotency_key", state: "state", chargeId: "charge_id" },
      ...{ response: "response_json", createdAt: "created_at", updatedAt: "updated_at" },
      operation: "split_part(idempotency_key, '_', 1)",
    },
    write: {
      ...{ state: "state", chargeId: "charge_id", response: "response_json" },
      updatedAt: "updated_at",
    },
  },
};

describe.each(["seed", "own"] as const)("on the table %s", (table) => {
  beforeEach(async () => {
    await world.fresh(table);
    if (table === "seed") world.config(SEED_TABLE);
  });

  /** Mints and pays; answers the provider's id, or the code of the refusal. */
  async function buy(
    intentId: string,
    request: JsonObject,
    more: Partial<MintInput> = {},
  ): Promise<string> {
    const where = table === "own" ? { request } : {};
    // Equal prices within minutes and no order number would rightly be called alike.
    const money = { amount: 2_000n + BigInt(/\d/.exec(intentId)?.[0] ?? 0), currency: "usd" };
    await withTx(world.pool, (tx) =>
      mintIntent(tx, { intentId, accountId: "A", ...money, ...where, ...more }),
    );
    const deps: ExecuteDeps = { db: world.pool, stripe: clientOf(world.stripe.url) };
    const paying = table === "own" ? deps : { ...deps, paramsOf: () => request };
    return executePayment(paying, intentId).then(
      (paid) => paid.chargeId ?? "",
      (error: unknown) => (error instanceof LedgerError ? error.code : "?"),
    );
  }

  const visa = { payment_method: "pm_card_visa" };

  it("default: all that the ledger does is quiet", async () => {
    const { control } = world.stripe;
    const paid = await buy("inv-1", visa);
    control.fault({ kind: "lost_response", method: "POST", count: 2 });
    expect(await buy("inv-2", visa)).toMatch(/^pi_/);
    control.fault({ kind: "error_after", method: "POST" });
    expect(await buy("inv-3", visa)).toMatch(/^pi_/);
    control.fault({ kind: "rate_limit", method: "POST" });
    expect(await buy("inv-4", visa)).toBe("retryable");
    expect(await buy("inv-5", { payment_method: "pm_card_chargeDeclined" })).toBe("failed");
    expect(await buy("inv-6", { payment_method: "pm_usBankAccount_success" })).toBe("pending");
    const held = await buy("inv-7", { ...visa, capture_method: "manual" });
    const refund = { operation: "refund", amount: 500n } as const;
    expect(await buy("inv-1-refund", { payment_intent: paid }, refund)).toMatch(/^re_/);
    const capture = { payment_intent: held };
    expect(await buy("inv-7-capture", capture, { operation: "capture" })).toBe(held);
    const outcome = await world.once();
    expect(outcome.incidents.filter((one) => one.severity !== "info")).toEqual([]);
    expect(outcome.exitCode).toBe(0);
  });

  it("behavior: what the ledger leaves in doubt, tallyd settles from the same truth", async () => {
    const { control } = world.stripe;
    control.fault({ kind: "lost_response", method: "POST", count: 2 });
    const noRight = { error: { type: "invalid_request_error", message: "no" } };
    control.fault({ kind: "respond", method: "GET", status: 403, body: noRight });
    expect(await buy("inv-1", visa)).toBe("unknown");
    const outcome = await world.once();
    expect(outcome.open).toEqual([]);
    expect(outcome.rows["inv-1"]?.state).toBe("recorded");
    const [made] = (await clientOf(world.stripe.url).paymentIntents.list()).data;
    const deps: ExecuteDeps = { db: world.pool, stripe: clientOf(world.stripe.url) };
    const replayed = await executePayment(deps, "inv-1");
    expect(replayed.replayed).toBe(true);
    expect([made?.id, made?.latest_charge]).toContain(replayed.chargeId);
  });

  it("behavior: a naive writer is caught", async () => {
    const stripe = clientOf(world.stripe.url, 0);
    const row = { amount: 2_000, currency: "usd", metadata: { intent_id: "inv-1" } };
    const naive = () =>
      stripe.paymentIntents.create(
        { ...row, payment_method: "pm_card_visa", confirm: true },
        { idempotencyKey: crypto.randomUUID() },
      );
    await world.row({ id: "inv-1", state: "in_flight" });
    await naive();
    await naive();
    const outcome = await world.once();
    expect(theOpen(outcome, "double_charge").severity).toBe("critical");
  });
});
