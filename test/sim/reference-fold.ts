/** One operation, one incident per kind: what is said of several of its rows is said once. */
import type { Matching } from "./reference-match.ts";
import type { Expected } from "./reference.ts";

/**
 * Kinds that speak about an operation; the others are about charges, keys or rows that share one.
 */
const ABOUT_OPERATIONS: ReadonlySet<string> = new Set([
  "state_drift",
  "stuck_in_flight",
  "stuck_reconciling",
  "retry_horizon_exceeded",
  "amount_mismatch",
  "refund_drift",
  "dispute_opened",
]);

const SEVERITIES: readonly (string | null)[] = ["info", "warning", "critical"];

/** Makes one finding of all of a kind about one operation; the worst severity leads. */
export function foldExpected(findings: readonly Expected[], matching: Matching): Expected[] {
  const folded = new Map<string, Expected>();
  findings.forEach((one, index) => {
    const about = ABOUT_OPERATIONS.has(one.code) ? operationOf(one, matching) : String(index);
    const name = `${one.code} ${about}`;
    const known = folded.get(name);
    folded.set(name, known === undefined ? one : merge(known, one));
  });
  return [...folded.values()];
}

function operationOf(one: Expected, matching: Matching): string {
  const [row] = one.intents;
  const [charge] = one.charges ?? [];
  const found = matching.operations.find(
    ({ rows, payments }) =>
      rows.some(({ id }) => id === row) ||
      payments.some(({ charges }) => charges.some(({ id }) => id === charge)),
  );
  if (found === undefined) throw new Error(`${one.code} is about no operation`);
  return found.name;
}

function merge(first: Expected, second: Expected): Expected {
  const rank = (one: Expected): number => SEVERITIES.indexOf(one.severity);
  const open = first.severity === null || second.severity === null;
  const worst = rank(second) > rank(first) ? second.severity : first.severity;
  return {
    ...first,
    // What the rules leave open for one row is open for both, unless the other is the worst there
    // is.
    severity: open && worst !== "critical" ? null : worst,
    intents: [...new Set([...first.intents, ...second.intents])],
    charges:
      first.charges === null || second.charges === null
        ? null
        : [...new Set([...first.charges, ...second.charges])],
  };
}
