/**
 * One operation, two or more successful charges. Each case shows trouble first, then what makes the
 * finding go away. Cases B02, B03, B09, B20, B29, B30 of the field list.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import type { Finding } from "../../src/core/finding.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;
let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

async function doubles(): Promise<Finding[]> {
  const findings = await world.judge();
  return findings.filter((finding) => finding.code === "double_charge");
}

test("default: three charges of one order, one row (B02)", async () => {
  await world.intent({ id: "L1", amount: 12750, key: "k1", charge: "ch_3", reference: "order-50" });
  for (const id of ["ch_1", "ch_2", "ch_3"]) {
    await world.charge({ id, amount: 12750, customer: "cus_9", reference: "order-50" });
  }
  const findings = await world.judge();
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatchObject({
    code: "double_charge",
    severity: "critical",
    basis: "reference",
    intents: ["L1"],
    charges: ["ch_1", "ch_2", "ch_3"],
    amountAtRisk: 25500n,
    currency: "usd",
    evidence: { keeper: "ch_1" },
  });
  const members = findings[0]?.evidence["charges"] as { id: string; reason?: string }[];
  const reasons = Object.fromEntries(members.map((member) => [member.id, member.reason ?? null]));
  expect(reasons).toEqual({ ch_1: "no local row", ch_2: "no local row", ch_3: null });
});

test("behavior: different references are different purchases (B02 variant)", async () => {
  await world.intent({ id: "L1", amount: 12750, charge: "ch_3", reference: "order-50" });
  await world.charge({ id: "ch_3", amount: 12750, customer: "cus_9", reference: "order-50" });
  await world.charge({ id: "ch_4", amount: 12750, customer: "cus_9", reference: "order-51" });
  await world.charge({ id: "ch_5", amount: 12750, customer: "cus_9", reference: "order-52" });
  expect(await world.codes()).toEqual(["orphan_charge warning", "orphan_charge warning"]);
});

test("behavior: two rows of one reference, each properly recorded (B03 b)", async () => {
  await world.intent({ id: "L1", key: "x-ref9-tokA", charge: "ch_1", reference: "ref9" });
  await world.intent({ id: "L2", key: "x-ref9-tokB", charge: "ch_2", reference: "ref9" });
  await world.charge({ id: "ch_1", ageMs: HOUR });
  await world.charge({ id: "ch_2", ageMs: HOUR - 35 * SECOND });
  const [double] = await doubles();
  expect(double).toMatchObject({ basis: "reference", intents: ["L1", "L2"] });
  expect(double?.evidence["gapSeconds"]).toBe(35);
});

test("behavior: one key charged again outside its window (B09)", async () => {
  await world.intent({ id: "L1", state: "reconciling", amount: 9900, key: "k1", ageMs: 30 * HOUR });
  await world.charge({ id: "ch_1", amount: 9900, keys: ["k1"], ageMs: 30 * HOUR });
  await world.charge({ id: "ch_2", amount: 9900, keys: ["k1"], ageMs: 2 * HOUR });
  const findings = await world.judge();
  expect(findings.map((finding) => finding.code)).toEqual(["double_charge"]);
  expect(findings[0]).toMatchObject({ basis: "key", amountAtRisk: 9900n });
  expect(findings[0]?.evidence["outsideReplayWindow"]).toBe(true);
});

test("behavior: two charges of one intent by metadata, even without a row", async () => {
  await world.charge({ id: "ch_1", mark: "pay-7" });
  await world.charge({ id: "ch_2", mark: "pay-7" });
  expect(await doubles()).toMatchObject([{ basis: "intent", charges: ["ch_1", "ch_2"] }]);
});

test("behavior: a failed attempt and a success of one intent are one payment (B07)", async () => {
  await world.intent({ id: "L1", charge: "ch_b" });
  await world.charge({ id: "ch_a", pi: "pi_1", status: "failed" });
  await world.charge({ id: "ch_b", pi: "pi_1" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: an authorisation that was not captured is no charge", async () => {
  await world.intent({ id: "L1", charge: "ch_1" });
  await world.charge({ id: "ch_1" });
  await world.charge({ id: "ch_2", mark: "L1", captured: false });
  expect(await doubles()).toEqual([]);
});

test("behavior: refunds of the excess settle it, a failed refund brings it back (B29)", async () => {
  await world.charge({ id: "ch_1", mark: "pay-7" });
  await world.charge({ id: "ch_2", mark: "pay-7", amountRefunded: 1000 });
  expect(await doubles()).toEqual([]);
  await world.refund({ id: "re_1", charge: "ch_2", amount: 1000 });
  expect(await doubles()).toEqual([]);
  await world.refund({ id: "re_1", charge: "ch_2", amount: 1000, status: "failed" });
  expect(await doubles()).toMatchObject([{ amountAtRisk: 1000n }]);
});

test("behavior: a pending refund settles nothing, a partial one lowers the excess", async () => {
  await world.charge({ id: "ch_1", mark: "pay-7" });
  await world.charge({ id: "ch_2", mark: "pay-7", amountRefunded: 400 });
  await world.refund({ id: "re_1", charge: "ch_2", amount: 400, status: "pending" });
  expect(await doubles()).toMatchObject([{ amountAtRisk: 1000n }]);
  await world.refund({ id: "re_1", charge: "ch_2", amount: 400, status: "succeeded" });
  expect(await doubles()).toMatchObject([{ amountAtRisk: 600n }]);
});

test("behavior: half refunded on each side leaves one price paid", async () => {
  await world.charge({ id: "ch_1", mark: "pay-7", amountRefunded: 500 });
  await world.charge({ id: "ch_2", mark: "pay-7", amountRefunded: 500 });
  expect(await doubles()).toEqual([]);
});

test("behavior: a lost dispute is money returned, an open one forbids a refund (B30)", async () => {
  await world.charge({ id: "ch_1", mark: "pay-7", ageMs: 2 * HOUR });
  await world.charge({ id: "ch_2", mark: "pay-7" });
  const dispute = { id: "du_1", charge: "ch_2", amount: 1000, refundable: false };
  await world.dispute({ ...dispute, status: "needs_response" });
  const [double] = await doubles();
  expect(double?.advice).toContain("do not refund");
  await world.dispute({ ...dispute, status: "lost" });
  expect(await doubles()).toEqual([]);
});

test("behavior: the connected account's mirror of a destination charge is the same money (B20)", async () => {
  await world.intent({ id: "L1", charge: "ch_p", reference: "o-1" });
  await world.charge({ id: "ch_p", reference: "o-1" });
  await world.charge({
    id: "py_m",
    reference: "o-1",
    scope: "acct_C/test",
    sourceTransfer: "tr_1",
  });
  expect(await world.judge()).toEqual([]);
});

test("behavior: a confirmed repeat is no double charge", async () => {
  await world.intent({ id: "L1", charge: "ch_1", reference: "o-1" });
  await world.intent({ id: "L2", charge: "ch_2", reference: "o-1", repeatConfirmed: true });
  await world.charge({ id: "ch_1" });
  await world.charge({ id: "ch_2" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: one reference used by two accounts are two purchases", async () => {
  await world.intent({ id: "L1", account: "A", charge: "ch_1", reference: "o-1" });
  await world.intent({ id: "L2", account: "B", charge: "ch_2", reference: "o-1" });
  await world.charge({ id: "ch_1", reference: "o-1" });
  await world.charge({ id: "ch_2", reference: "o-1" });
  expect(await world.judge()).toEqual([]);
});

test("behavior: the payment identifier ties rows together", async () => {
  await world.intent({ id: "L1", charge: "ch_1", paymentId: "purchase-0001-abcd" });
  await world.intent({ id: "L2", charge: "ch_2", paymentId: "purchase-0001-abcd" });
  await world.charge({ id: "ch_1" });
  await world.charge({ id: "ch_2" });
  expect(await doubles()).toMatchObject([{ basis: "payment_id" }]);
});

test("behavior: the excess of different currencies is the later charge", async () => {
  await world.charge({ id: "ch_1", mark: "pay-7", currency: "usd", ageMs: 2 * HOUR });
  await world.charge({ id: "ch_2", mark: "pay-7", currency: "eur", amount: 900 });
  expect(await doubles()).toMatchObject([{ amountAtRisk: 900n, currency: "eur" }]);
});
