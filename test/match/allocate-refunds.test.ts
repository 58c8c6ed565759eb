/**
 * Goal: a transfer in the other direction settles the payment that it most likely gives back.
 * Method: one pair of addresses, payments at given minutes, refunds after them.
 */
import { expect, test } from "vitest";

import { allocateRefunds } from "../../src/match/allocate-refunds.ts";
import type { BackTransfer, PaidTransfer } from "../../src/match/allocate-refunds.ts";

function at(minute: number): Date {
  return new Date(Date.UTC(2026, 5, 1, 12, minute));
}

function paid(chargeId: string, operationId: string, minute: number, amount = 10n): PaidTransfer {
  return { chargeId, operationId, amount, at: at(minute), position: 0n };
}

function back(refundId: string, minute: number, amount = 10n, named: string[] = []): BackTransfer {
  return { refundId, amount, at: at(minute), named };
}

test("default: the later charge of a purchase that was paid twice, not a newer single one (B36)", () => {
  const charges = [paid("a1", "A", 0), paid("a2", "A", 1), paid("b1", "B", 2)];
  expect(allocateRefunds(charges, [back("r1", 5)])).toEqual([
    { refundId: "r1", chargeId: "a2", basis: "double" },
  ]);
});

test("behavior: a refund row of the team names the purchase", () => {
  const charges = [paid("a1", "A", 0), paid("a2", "A", 1), paid("b1", "B", 2)];
  expect(allocateRefunds(charges, [back("r1", 5, 10n, ["B"])])).toEqual([
    { refundId: "r1", chargeId: "b1", basis: "row" },
  ]);
});

test("behavior: the same amount, the newest first, each charge once", () => {
  const charges = [paid("a1", "A", 0), paid("b1", "B", 1), paid("c1", "C", 2, 7n)];
  const found = allocateRefunds(charges, [back("r1", 3), back("r2", 4), back("r3", 5)]);
  expect(found.map((one) => [one.refundId, one.chargeId, one.basis])).toEqual([
    ["r1", "b1", "amount"],
    ["r2", "a1", "amount"],
  ]);
});

test("behavior: partial refunds share one charge until nothing is left", () => {
  const charges = [paid("a1", "A", 0, 10n)];
  const found = allocateRefunds(charges, [back("r1", 1, 4n), back("r2", 2, 6n), back("r3", 3, 1n)]);
  expect(found.map((one) => one.refundId)).toEqual(["r1", "r2"]);
});

test("behavior: nothing is given back before it was paid", () => {
  expect(allocateRefunds([paid("a1", "A", 5)], [back("r1", 4)])).toEqual([]);
});
