import type { Pool } from "pg";

import { formatDuration } from "../config/duration.ts";
import type { Clock } from "../core/clock.ts";
import { stripeScopes } from "../core/scope.ts";
import type { Settings } from "../core/settings.ts";
import { BUDGET_DAYS, monthlyReads } from "../store/read-counts.ts";
import type { Check } from "./check.ts";
import { fine, told } from "./check.ts";

/** What one reader costs in a month, per watched account. */
export interface BudgetLine {
  readonly reader: string;
  readonly beat: string;
  readonly reads: number;
}

const MONTH_MS = BUDGET_DAYS * 86_400_000;
// Stripe's floor of the read allocation, however few transactions there are (Stripe's
// documentation).
const READS_FLOOR = 10_000;
// Payment intents, charges, refunds and disputes; one page each in a quiet hour.
const LISTS = 4;

/**
 * What a month of the configured beats costs at least; a busy account adds a read per 100
 * objects.
 */
export function budgetLines(settings: Pick<Settings, "beats" | "rules">): BudgetLine[] {
  const { beats, rules } = settings;
  const often = (beatMs: number): number => Math.ceil(MONTH_MS / beatMs);
  return [
    { reader: "webhooks", beat: "as they come", reads: 0 },
    { reader: "events list", beat: formatDuration(beats.eventsMs), reads: often(beats.eventsMs) },
    {
      reader: "object lists",
      beat: formatDuration(beats.listsMs),
      reads: LISTS * often(beats.listsMs),
    },
    { reader: "each ambiguous intent", beat: "its ladder", reads: rules.ladder.stripe.length },
  ];
}

/** The reads of a month against Stripe's allocation: planned by the beats, and used so far. */
export async function checkBudget(
  settings: Settings,
  deps: { readonly own: Pool | null; readonly clock: Clock },
): Promise<Check> {
  const lines = budgetLines(settings);
  const planned = lines.slice(0, -1).reduce((sum, line) => sum + line.reads, 0);
  const table = lines
    .map((line) => `${line.reader} (${line.beat}) ${String(line.reads)}`)
    .join("; ");
  const used = await usedReads(settings, deps);
  const seen = `a month per account: ${table}; together ${String(planned)}${used.text}`;
  if (planned <= READS_FLOOR && !used.over) {
    return fine("read budget", seen, `Stripe allows at least ${String(READS_FLOOR)} a month`);
  }
  return told("read budget", "warning", {
    seen,
    meaning: `Stripe allows 500 reads per transaction, at least ${String(READS_FLOOR)} a month`,
    advice: "make EVENTS_BEAT and LISTS_BEAT longer; webhooks stay the fast path and cost nothing",
  });
}

async function usedReads(
  settings: Settings,
  deps: { readonly own: Pool | null; readonly clock: Clock },
): Promise<{ readonly text: string; readonly over: boolean }> {
  if (deps.own === null) return { text: "", over: false };
  const there = await deps.own.query<{ there: boolean }>(
    "select to_regclass('tallyd.read_count') is not null as there",
  );
  if (there.rows[0]?.there !== true) return { text: "", over: false };
  const scopes = stripeScopes(settings.stripe);
  const reads = await monthlyReads(deps.own, { now: deps.clock.now(), scopes });
  const parts = reads.map(
    (scope) => `${scope.scope} ${String(scope.used)} of ${String(scope.allowed)}`,
  );
  const text =
    parts.length === 0 ? "" : `; used in ${String(BUDGET_DAYS)} days: ${parts.join(", ")}`;
  return { text, over: reads.some((scope) => scope.used > scope.allowed) };
}
