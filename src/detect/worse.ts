import type { Code } from "../core/finding.ts";
import { SEVERITY_RANK } from "../core/finding.ts";
import type { Change, Verdict } from "../core/incident.ts";
import { formatAmount } from "../core/money.ts";

/** The facts of an incident or finding that can get worse. */
export type Facts = Omit<Verdict, "failedRefunds"> & {
  /** `null`: unknown, so nothing is said about them. */
  readonly failedRefunds: readonly string[] | null;
};

// Codes whose trouble is the number of rows: one more row is worse, not a late record.
const ROWS_ARE_THE_TROUBLE: ReadonlySet<Code> = new Set<Code>([
  "duplicate_charge_id",
  "authorization_reuse",
  "key_reuse",
  "fingerprint_conflict",
]);

// Words name at most this many ids; the lists of the incident hold all of them.
const NAMED_MAX = 5;

/**
 * What got worse from `before` to `after`: a new charge, a higher severity, more money at risk, a
 * refund that failed. Empty when nothing did. Money in another currency is not compared: there is
 * no rate here (invariant 8).
 */
export function whatGotWorse(code: Code, before: Facts, after: Facts): readonly Change[] {
  return [
    ...severityRose(before, after),
    ...(code === "spend_cap_exceeded" ? [] : newIds("charge", before.charges, after.charges)),
    ...(ROWS_ARE_THE_TROUBLE.has(code) ? newIds("intent", before.intents, after.intents) : []),
    ...moneyRose(code, before, after),
    ...refundsFailed(before, after),
  ];
}

/** True when the facts are milder: lower severity, fewer charges, or less money at risk. */
export function isMilder(before: Facts, after: Facts): boolean {
  if (SEVERITY_RANK[after.severity] < SEVERITY_RANK[before.severity]) return true;
  if (after.charges.length < before.charges.length) return true;
  if (before.amountAtRisk === null || before.currency !== after.currency) return false;
  return after.amountAtRisk !== null && after.amountAtRisk < before.amountAtRisk;
}

function severityRose(before: Facts, after: Facts): readonly Change[] {
  if (SEVERITY_RANK[after.severity] <= SEVERITY_RANK[before.severity]) return [];
  return [{ what: "severity", words: `${before.severity} became ${after.severity}` }];
}

function newIds(
  what: "charge" | "intent",
  before: readonly string[],
  after: readonly string[],
): readonly Change[] {
  const known = new Set(before);
  const added = after.filter((id) => !known.has(id));
  if (added.length === 0) return [];
  return [{ what, words: `${added.length === 1 ? "one" : "several"} more: ${name(added)}` }];
}

function moneyRose(code: Code, before: Facts, after: Facts): readonly Change[] {
  const now = after.amountAtRisk;
  if (now === null || now <= 0n || after.currency === null) return [];
  const then = before.amountAtRisk ?? 0n;
  if (before.currency !== null && before.currency !== after.currency) return [];
  if (now <= then) return [];
  // Each further payment of a day raises the sum over its cap. Only a doubling (one more binary
  // digit) is news, otherwise a busy account would be an alert per payment.
  if (code === "spend_cap_exceeded" && then > 0n && bits(now) <= bits(then)) return [];
  const words = `money at risk rose from ${formatAmount(then, after.currency)} to ${formatAmount(now, after.currency)}`;
  return [{ what: "amount", words }];
}

function bits(amount: bigint): number {
  return amount.toString(2).length;
}

function refundsFailed(before: Facts, after: Facts): readonly Change[] {
  if (before.failedRefunds === null || after.failedRefunds === null) return [];
  const known = new Set(before.failedRefunds);
  const failed = after.failedRefunds.filter((id) => !known.has(id));
  if (failed.length === 0) return [];
  return [{ what: "refund_failed", words: `refund failed: ${name(failed)}` }];
}

function name(ids: readonly string[]): string {
  const more = ids.length - NAMED_MAX;
  return ids.slice(0, NAMED_MAX).join(", ") + (more > 0 ? ` and ${String(more)} more` : "");
}
