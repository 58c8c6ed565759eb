/**
 * Goal: field cases of single payments and their lives, seen from the outside.
 * Method: as in cases-double.test.ts, one account holds all cases and each looks at its own.
 */
import { createHash } from "node:crypto";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { about, openE2e, theOpenAbout } from "./world.ts";
import type { E2e, Outcome } from "./world.ts";

const HOUR = 3_600;
const DAY = 24 * HOUR;

let world: E2e;
beforeAll(async () => {
  world = await openE2e();
});
afterAll(async () => {
  await world.close();
});

describe.each(["seed", "own"] as const)("%s table", (table) => {
  let first: Outcome;
  let second: Outcome;
  beforeAll(async () => {
    await world.fresh(table, { STRIPE_ACCOUNTS: "acct_C" });
    await stageLost();
    await stageAttempts();
    await stageCanceled();
    await stageAccounts();
    await stageDisputes();
    await stageRefunds();
    first = await world.once();
    second = await world.once();
  });

  it("behavior: the second pass is quiet", () => {
    expect(first.exitCode).toBe(3);
    expect(first.json).toMatchObject({ failures: [] });
    expect(second.open).toEqual(first.open);
    expect(second.messages).toEqual(first.messages);
    expect(second.rows).toEqual(first.rows);
  });

  it("B04: a lost success is recorded although the row says failed, and nothing is open", () => {
    expect(first.rows["B04-L1"]?.state).toBe("recorded");
    expect(first.rows["B04-L1"]?.charge_id).toMatch(/^(pi|ch)_B04-1$/);
    expect(first.rows["B04-L1"]?.response_json).not.toBeNull();
    expect(about(first, "B04-L1")).toEqual([]);
  });

  it("B04: in flight past the limit without any object is stuck, and the row is left alone", () => {
    expect(about(first, "B04-L2")).toEqual([expect.stringMatching(/^stuck_in_flight /)]);
    expect(first.rows["B04-L2"]).toMatchObject({ state: "in_flight", charge_id: null });
  });

  it("B07: a failed attempt before a success is drift of the row and no second charge", () => {
    expect(about(first, "B07")).toEqual(["state_drift critical"]);
    const found = theOpenAbout(first, "state_drift", "B07");
    expect(found).toMatchObject({ intents: ["B07-L1"], amountAtRisk: "4200", currency: "eur" });
    expect(found.charges).toContain("ch_B07-b");
    expect(first.rows["B07-L1"]).toMatchObject({ state: "failed_terminal", charge_id: "ch_B07-a" });
  });

  it("B08: paid after a cancel: refund what is left", () => {
    expect(about(first, "B08a")).toEqual(["state_drift critical"]);
    const found = theOpenAbout(first, "state_drift", "B08a");
    expect(found.amountAtRisk).toBe("2500");
    expect(`${found.summary} ${found.advice} ${JSON.stringify(found.evidence)}`).toMatch(/2500/);
    expect(first.rows["B08a-L1"]?.state).toBe("failed_terminal");
  });

  it("B08: held after a cancel: cancel the payment intent, nothing to refund", () => {
    expect(about(first, "B08b")).toEqual([expect.stringMatching(/^state_drift /)]);
    const found = theOpenAbout(first, "state_drift", "B08b");
    expect(found.advice).toMatch(/cancel/i);
    expect(["0", null]).toContain(found.amountAtRisk);
  });

  it("B20: a connected account is a scope of its own and its copies of charges are nobody's", () => {
    expect(about(first, "B20")).toEqual([]);
    expect(first.incidents.flatMap((one) => one.charges)).not.toContain("py_B20-m");
    const reads = world.stripe.control.requests.filter((one) => one.account === "acct_C");
    expect(reads.length).toBeGreaterThan(0);
  });

  it("B30: a double whose excess may not be refunded says so", () => {
    expect(about(first, "B30a")).toEqual(["dispute_opened critical", "double_charge critical"]);
    expect(theOpenAbout(first, "double_charge", "B30a").advice).toMatch(/dispute/i);
  });

  it("B30: an inquiry is information", () => {
    expect(about(first, "B30b")).toEqual(["dispute_opened info"]);
    expect(first.messages.join("\n")).not.toContain("B30b");
  });

  it("B30: refunded and lost in a dispute: the money went back twice", () => {
    const found = theOpenAbout(first, "refund_drift", "B30c");
    expect(found).toMatchObject({ severity: "critical", amountAtRisk: "5000", currency: "usd" });
  });

  it("B29: a pending refund settles nothing", () => {
    expect(about(first, "B29a")).toEqual(["double_charge critical"]);
    expect(theOpenAbout(first, "double_charge", "B29a").amountAtRisk).toBe("700");
  });

  it("B29: a refund made in the dashboard is a fact and no drift", () => {
    expect(about(first, "B29b")).toEqual([]);
  });

  if (table === "own") {
    it("B29: refunds that add up to more than Stripe's are drift", () => {
      expect(about(first, "B29c")).toContain("refund_drift critical");
    });
  }

  if (table === "own") {
    it("B11: a fingerprint that differs in meaning from its row", () => {
      expect(about(first, "B11a")).toEqual(["fingerprint_conflict critical"]);
      expect(about(first, "B11b")).toEqual([]);
      expect(about(first, "B11c")).toEqual([]);
    });
  }
});

async function stageLost(): Promise<void> {
  const lost = { id: "B04-L1", state: "failed_retryable", amount: 41_000, key: "B04-k1" };
  await world.row({ ...lost, secondsAgo: 5 * DAY, more: { reference: "don-3/Jul" } });
  world.pay({
    ...{ id: "B04-1", amount: 41_000, secondsAgo: 5 * DAY - 3, key: "B04-k1" },
    ...{ customer: "cus_B04", metadata: { reference: "don-3/Jul" } },
  });
  await world.row({ id: "B04-L2", state: "in_flight", amount: 2_500, secondsAgo: 40 * 60 });
}

async function stageAttempts(): Promise<void> {
  const row = { id: "B07-L1", state: "failed_terminal", amount: 4_200, currency: "eur" };
  await world.row({ ...row, charge: "ch_B07-a", secondsAgo: 310 });
  world.stripe.control.seed.paymentIntent({
    ...{ id: "pi_B07-1", amount: 4_200n, currency: "eur", customer: "cus_B07" },
    ...{ created: world.at(305), latest_charge: "ch_B07-b", charge: { id: "ch_B07-b" } },
  });
  world.stripe.control.seed.charge({
    ...{ id: "ch_B07-a", payment_intent: "pi_B07-1", amount: 4_200n, currency: "eur" },
    ...{ status: "failed", paid: false, captured: false, created: world.at(300) },
    ...{ customer: "cus_B07", amount_captured: 0n },
  });
}

async function stageCanceled(): Promise<void> {
  const row = { state: "failed_terminal", amount: 3_000, currency: "gbp" };
  const response = { reason: "user_cancelled" };
  await world.row({ id: "B08a-L1", ...row, response });
  await world.row({ id: "B08b-L1", ...row, response });
  const paid = { amount: 3_000, currency: "gbp" };
  const mark = (id: string) => ({ customer: `cus_${id}`, metadata: { intent_id: `${id}-L1` } });
  world.pay({ id: "B08a-1", ...paid, ...mark("B08a") });
  world.stripe.control.seed.refund({ id: "re_B08a", charge: "ch_B08a-1", amount: 500n });
  world.pay({ id: "B08b-1", ...paid, ...mark("B08b"), more: { status: "requires_capture" } });
}

async function stageAccounts(): Promise<void> {
  const rows = [
    { id: "B20-L1", account: "platform", amount: 10_000, charge: "ch_B20-p" },
    { id: "B20-L2", account: "acct_C", amount: 4_000, charge: "ch_B20-c" },
  ];
  for (const row of rows) await world.row({ ...row, currency: "eur", state: "recorded" });
  const paid = { currency: "eur", customer: "cus_B20" };
  const transfer_data = { destination: "acct_C" };
  world.pay({ id: "B20-p", amount: 10_000, ...paid, more: { transfer_data } });
  world.pay({ id: "B20-c", amount: 4_000, ...paid, more: { account: "acct_C" } });
  // The same money as the connected account lists it.
  world.stripe.control.seed.charge({
    ...{ id: "py_B20-m", account: "acct_C", amount: 10_000n, currency: "eur" },
    ...{ created: world.at(900), source_transfer: "tr_1" },
  });
}

/** One order that was paid twice, both on one row's reference. */
async function stageDouble(id: string, amount: number): Promise<void> {
  const row = { id: `${id}-L1`, state: "recorded", amount, charge: `ch_${id}-1`, secondsAgo: HOUR };
  await world.row(row);
  const paid = { amount, customer: `cus_${id}`, metadata: { intent_id: `${id}-L1` } };
  world.pay({ id: `${id}-1`, ...paid, secondsAgo: HOUR });
  world.pay({ id: `${id}-2`, ...paid, secondsAgo: HOUR - 60 });
}

async function stageDisputes(): Promise<void> {
  const { seed } = world.stripe.control;
  await stageDouble("B30a", 2_000);
  seed.dispute({ id: "dp_B30a", charge: "ch_B30a-2", isChargeRefundable: false });
  for (const id of ["B30b", "B30c"]) {
    const [amount, charge] = [id === "B30b" ? 5_100 : 5_000, `ch_${id}-1`];
    await world.row({ id: `${id}-L1`, state: "recorded", amount, charge });
    world.pay({ id: `${id}-1`, amount, customer: `cus_${id}` });
  }
  seed.dispute({ id: "dp_B30b", charge: "ch_B30b-1", status: "warning_needs_response" });
  seed.refund({ id: "re_B30c", charge: "ch_B30c-1", amount: 5_000n });
  seed.dispute({ id: "dp_B30c", charge: "ch_B30c-1", status: "lost", amount: 5_000n });
}

async function stageRefunds(): Promise<void> {
  const { seed } = world.stripe.control;
  await stageDouble("B29a", 700);
  seed.refund({ id: "re_B29a", charge: "ch_B29a-2", amount: 700n, status: "pending" });
  await world.row({ id: "B29b-L1", state: "recorded", amount: 5_300, charge: "ch_B29b-1" });
  world.pay({ id: "B29b-1", amount: 5_300, customer: "cus_B29b" });
  seed.refund({ id: "re_B29b", charge: "ch_B29b-1", amount: 1_200n });
  const order = { more: { reference: "order-29" } };
  const c = { id: "B29c-L1", state: "recorded", amount: 5_400, charge: "ch_B29c-1", ...order };
  await world.row(c);
  world.pay({ id: "B29c-1", amount: 5_400, customer: "cus_B29c" });
  for (const [id, amount] of [
    ["a", 1_200n],
    ["b", 700n],
  ] as const) {
    seed.refund({ id: `re_B29c-${id}`, charge: "ch_B29c-1", amount });
  }
  await stageRicher();
}

/** What only a richer table can say. */
async function stageRicher(): Promise<void> {
  const found = await world.pool.query(
    `select from information_schema.columns
      where table_name = 'payment_intents' and column_name = 'fingerprint'`,
  );
  if (found.rowCount === 0) return;
  // The running total of the second event was booked as a refund of its own: 1200 + 1900.
  for (const [id, amount] of [
    ["a", 1_200],
    ["b", 1_900],
  ] as const) {
    await world.row({
      ...{ id: `B29c-R${id}`, state: "recorded", amount, charge: `re_B29c-${id}` },
      more: { operation: "refund", reference: "order-29" },
    });
  }
  const prints = [
    { id: "B11a", amount: 999, fingerprint: seedFingerprint(500, "usd", "B11a-L1") },
    { id: "B11b", amount: 998, fingerprint: seedFingerprint(998, "usd", "B11b-L1") },
    { id: "B11c", amount: 997, fingerprint: "made-by-a-recipe-nobody-knows" },
  ];
  for (const { id, amount, fingerprint } of prints) {
    const row = { id: `${id}-L1`, state: "recorded", amount, charge: `ch_${id}-1` };
    await world.row({ ...row, more: { fingerprint } });
    world.pay({ id: `${id}-1`, amount, customer: `cus_${id}` });
  }
}

/** The recipe of the article that the table comes from (Python's `json.dumps`, sorted keys). */
function seedFingerprint(amount: number, currency: string, intentId: string): string {
  const text = `{"amount": ${String(amount)}, "currency": "${currency}", "intent_id": "${intentId}"}`;
  return createHash("sha256").update(text).digest("hex");
}
