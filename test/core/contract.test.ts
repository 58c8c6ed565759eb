// Goal: every decision answers the six questions (README.md, what it settles by itself), with
// amounts as strings.
import { expect, test } from "vitest";

import { contractOf } from "../../src/core/contract.ts";
import type { ContractSubject } from "../../src/core/contract.ts";
import { INTENT_STATES } from "../../src/core/states.ts";

const NOW = new Date("2026-06-01T12:00:00Z");
const rules = { retryHorizonMs: 24 * 3_600_000 };

function subject(fields: Partial<ContractSubject> = {}): ContractSubject {
  return {
    intentId: "in_1",
    accountId: "A",
    scope: "platform/test",
    operationId: "ref:A:o-1",
    amount: 41000n,
    currency: "usd",
    payee: "acct_x",
    reference: "o-1",
    fingerprint: null,
    idempotencyKey: "k1",
    state: "reconciling",
    createdAt: new Date("2026-06-01T10:00:00Z"),
    updatedAt: new Date("2026-06-01T11:00:00Z"),
    ...fields,
  };
}

test("default", () => {
  const contract = contractOf({
    intent: subject(),
    rules,
    now: NOW,
    open: ["the list has a hole"],
  });
  expect(Object.keys(contract)).toEqual([
    "identity",
    "operation",
    "binding",
    "admission",
    "retention",
    "uncertainty",
  ]);
  expect(contract.binding).toMatchObject({ amount: "41000", currency: "usd", payee: "acct_x" });
  expect(contract.binding.answer).toBe("410.00 USD to acct_x");
  expect(contract.retention).toMatchObject({
    key: "k1",
    protectedUntil: "2026-06-02T10:00:00.000Z",
    stillProtects: true,
  });
  expect(contract.uncertainty).toEqual({
    answer: "the list has a hole",
    open: ["the list has a hole"],
  });
});

test("behavior: a key past its window, and none at all, protect nothing", () => {
  const later = new Date("2026-06-02T10:00:00Z");
  const past = contractOf({ intent: subject(), rules, now: later, open: [] });
  expect(past.retention.stillProtects).toBe(false);
  expect(past.retention.answer).toContain("would charge again");
  const none = contractOf({ intent: subject({ idempotencyKey: null }), rules, now: NOW, open: [] });
  expect(none.retention).toMatchObject({ stillProtects: false, protectedUntil: null });
  expect(none.uncertainty.answer).toBe("nothing is open");
});

test("behavior: every state says who holds the row", () => {
  const answers = INTENT_STATES.map(
    (state) =>
      contractOf({ intent: subject({ state }), rules, now: NOW, open: [] }).admission.answer,
  );
  expect(new Set(answers).size).toBe(INTENT_STATES.length);
});
