import type { Finding } from "../../src/core/finding.ts";
import type { Judged } from "../../src/detect/diff.ts";

/** The moment at which the tests' runs begin. */
export const START = new Date("2026-03-02T10:00:00.000Z");

/** `START` moved by seconds. */
export function at(seconds: number): Date {
  return new Date(START.getTime() + seconds * 1_000);
}

/** A double charge of 12.50 USD, changed where the test says so. */
export function makeFinding(change: Partial<Finding> = {}): Finding {
  return {
    code: "double_charge",
    subject: "ref:platform/test:order-1",
    operationId: "ref:platform/test:order-1",
    severity: "critical",
    basis: "reference",
    rail: "stripe",
    scope: "platform/test",
    intents: ["order-1"],
    charges: ["ch_1", "ch_2"],
    amountAtRisk: 1250n,
    currency: "usd",
    occurredAt: at(-60),
    summary: "order-1 was charged 2 times within 35 s",
    advice: "Refund the excess.",
    evidence: { gapSeconds: 35, keeper: "ch_1" },
    look: null,
    ...change,
  };
}

/** One of many: its own operation, charge and amount. */
export function makeNumbered(index: number, change: Partial<Finding> = {}): Finding {
  const name = String(index);
  return makeFinding({
    subject: `op-${name}`,
    operationId: `op-${name}`,
    intents: [],
    charges: [`ch_${name}a`, `ch_${name}b`],
    amountAtRisk: BigInt(1000 + index),
    summary: `operation ${name} was charged twice`,
    ...change,
  });
}

/** A run that saw everything. */
export const ALL_JUDGED: Judged = {
  operations: "all",
  subjects: "all",
  codes: "all",
  blindScopes: new Set(),
};
