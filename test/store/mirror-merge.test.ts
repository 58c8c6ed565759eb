/**
 * Goal: merging is the same for any order and any repetition of statements (invariant 5).
 * Method: a property over facts of one object with equal, near and far versions; no database.
 */
import fc from "fast-check";
import { expect, test } from "vitest";

import type { ChargeFact, PaymentIntentFact } from "../../src/core/facts.ts";
import { mergeStatements, sameStatement } from "../../src/store/mirror-merge.ts";
import type { Statement } from "../../src/store/mirror-merge.ts";
import { CHARGES, PAYMENT_INTENTS, statementOf } from "../../src/store/mirror-tables.ts";
import type { MirrorTable } from "../../src/store/mirror-tables.ts";
import { at, charge, ofKind, paid, paymentIntent, read } from "../sources/stripe/shapes.ts";

const version = {
  versionAt: fc.constantFrom(at(10), at(11), at(12), at(13)),
  versionRank: fc.integer({ min: 0, max: 7 }),
};
const amount = fc.constantFrom(0n, 500n, 2000n);
const word = fc.option(fc.constantFrom("a", "b", "c"), { nil: null });
const owned = fc.constantFrom("yes" as const, "no" as const, "unknown" as const);

const [chargeBase] = ofKind(read(charge()), "charge");
const [intentBase] = ofKind(read(paymentIntent()), "payment_intent");

const chargeFact = fc
  .record({
    ...version,
    amountCaptured: amount,
    amountRefunded: amount,
    status: fc.constantFrom("pending" as const, "succeeded" as const, "failed" as const),
    captured: fc.boolean(),
    derived: fc.boolean(),
    payer: word,
    intentMark: word,
    failureCode: word,
    owned,
    createdAt: fc.constantFrom(at(1), at(2)),
  })
  .map((fields): ChargeFact => ({ ...must(chargeBase), ...fields }));

const intentFact = fc
  .record({
    ...version,
    amountReceived: amount,
    status: fc.constantFrom("processing", "succeeded", "canceled", "brand_new"),
    latestCharge: word,
    reference: word,
    owned,
  })
  .map((fields): PaymentIntentFact => ({ ...must(intentBase), ...fields }));

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a test fixture is missing");
  return value;
}

function mergeAll(table: MirrorTable, statements: readonly Statement[]): Statement {
  const rules = Object.fromEntries(table.columns.map((column) => [column.name, column.rule]));
  return statements.reduce((merged, next) => mergeStatements(rules, merged, next));
}

test.each([
  ["charges", CHARGES, chargeFact],
  ["payment intents", PAYMENT_INTENTS, intentFact],
] as const)("behavior: any order, repetition and grouping of %s", (_name, table, arbitrary) => {
  fc.assert(
    fc.property(
      fc.array(arbitrary as fc.Arbitrary<ChargeFact | PaymentIntentFact>, {
        minLength: 1,
        maxLength: 6,
      }),
      fc.array(fc.nat({ max: 1000 }), { minLength: 12, maxLength: 12 }),
      (facts, picks) => {
        const statements = facts.map(statementOf);
        const straight = mergeAll(table, statements);
        const shuffled = [...statements, ...statements]
          .map((statement, index) => ({ statement, pick: picks[index] ?? 0 }))
          .sort((a, b) => a.pick - b.pick)
          .map(({ statement }) => statement);
        expect(normal(mergeAll(table, shuffled))).toEqual(normal(straight));
        const half = Math.ceil(shuffled.length / 2);
        const grouped = [
          mergeAll(table, shuffled.slice(half)),
          mergeAll(table, shuffled.slice(0, half)),
        ];
        expect(normal(mergeAll(table, grouped))).toEqual(normal(straight));
      },
    ),
    { numRuns: 1000 },
  );
});

/** The order of the names inside of `fieldOrders` means nothing. */
function normal(statement: Statement): Statement {
  const sorted = Object.entries(statement.fieldOrders).sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...statement, fieldOrders: Object.fromEntries(sorted) };
}

test("behavior: success is never taken back, by whatever time", () => {
  const succeeded = must(read(paid(), { second: 5 }).facts[0]);
  const later = must(read(paymentIntent({ status: "processing" }), { second: 99 }).facts[0]);
  if (succeeded.kind !== "payment_intent" || later.kind !== "payment_intent") throw new Error();
  const merged = mergeAll(PAYMENT_INTENTS, [succeeded, later].map(statementOf));
  expect(merged.columns).toMatchObject({ status: "succeeded", amount_received: 2000n });
  expect(merged.newestMs).toBe(at(99).getTime());
});

test("behavior: a poorer fetch does not empty a richer event (B23)", () => {
  const rich = must(ofKind(read(paid({ latest_charge: "ch_1" })), "payment_intent")[0]);
  const poor = must(
    ofKind(
      read(paid({ latest_charge: null, customer: null }), { second: 20 }),
      "payment_intent",
    )[0],
  );
  const merged = mergeAll(PAYMENT_INTENTS, [rich, poor].map(statementOf));
  expect(merged.columns).toMatchObject({ latest_charge: "ch_1", customer: "cus_1" });
});

test("behavior: a derived charge gives way to the charge itself, and lifts a pending one", () => {
  const derived = must(ofKind(read(paid(), { second: 30 }), "charge")[0]);
  const full = must(ofKind(read(charge(), { second: 20 }), "charge")[0]);
  const pending = { ...full, status: "pending" as const, captured: false, amountCaptured: 0n };
  const replaced = mergeAll(CHARGES, [derived, full].map(statementOf));
  expect(replaced.columns).toMatchObject({ derived: false, created_at: at(1) });
  const lifted = mergeAll(CHARGES, [derived, pending].map(statementOf));
  expect(lifted.columns).toMatchObject({
    status: "succeeded",
    amount_captured: 2000n,
    derived: true,
    instrument: full.instrument,
    created_at: at(1),
  });
});

test("behavior: a statement merged with itself is the same", () => {
  const fact = must(ofKind(read(charge()), "charge")[0]);
  const statement = statementOf(fact);
  expect(sameStatement(mergeAll(CHARGES, [statement, statement]), statement)).toBe(true);
});
