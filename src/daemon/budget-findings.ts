import type { Finding } from "../core/finding.ts";
import type { MonthlyReads } from "../store/read-counts.ts";
import { BUDGET_DAYS } from "../store/read-counts.ts";

// A fifth of the month's allowance is left: days enough to choose longer beats.
const NEARLY_USED_PERCENT = 80n;

/**
 * Accounts whose reads of the last 30 days come near what Stripe allows (500 per transaction, at
 * least 10,000 a month; Stripe's documentation). Closes by itself when they fall.
 */
export function budgetFindings(reads: readonly MonthlyReads[]): Finding[] {
  return reads.flatMap(({ scope, used, allowed }): Finding[] => {
    if (used * 100n < allowed * NEARLY_USED_PERCENT) return [];
    const days = String(BUDGET_DAYS);
    const figures = `${String(used)} of at least ${String(allowed)} reads of ${scope}`;
    return [
      {
        code: "config_error",
        subject: `reads:${scope}`,
        ...{ operationId: null, severity: "warning", basis: "reading_budget" },
        ...{ rail: "stripe", scope, intents: [], charges: [] },
        ...{ amountAtRisk: null, currency: null, occurredAt: null },
        summary: `${figures} were used in ${days} days: Stripe may refuse more`,
        advice:
          "Make EVENTS_BEAT and LISTS_BEAT longer (tallyd doctor shows what each costs). " +
          "Webhooks stay the fast path and cost nothing.",
        evidence: { used: String(used), allowed: String(allowed), days: BUDGET_DAYS },
        look: null,
      },
    ];
  });
}
