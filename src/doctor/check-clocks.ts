import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

// Stripe's Date header has whole seconds, and a round trip takes its part of one.
const APART_MS_MAX = 2_000;

/** How far clocks are apart: ours, the databases', Stripe's (case B45). */
export async function checkClocks(input: {
  readonly clock: Clock;
  readonly databases: readonly { readonly name: string; readonly pool: Pool }[];
  /** Our clock ahead of Stripe's; `null`: not known. */
  readonly stripeAheadMs: number | null;
  readonly slackMs: number;
}): Promise<Check> {
  const apart: { readonly name: string; readonly ms: number }[] = [];
  try {
    for (const { name, pool } of input.databases) {
      apart.push({ name, ms: await aheadOf(pool, input.clock) });
    }
  } catch (error) {
    return unreadable("clocks", error, "check the database");
  }
  if (input.stripeAheadMs !== null) apart.push({ name: "Stripe", ms: input.stripeAheadMs });
  const seen =
    apart.length === 0
      ? "nothing to compare with"
      : apart.map(({ name, ms }) => `${describeAhead(ms)} ${name}`).join(", ");
  const worst = Math.max(0, ...apart.map(({ ms }) => Math.abs(ms)));
  if (worst <= APART_MS_MAX) return fine("clocks", seen);
  return told("clocks", worst > input.slackMs ? "fault" : "warning", {
    seen,
    meaning: "ages and windows are off by that much; beyond CLOCK_SLACK proofs are wrong",
    advice: "run a time service (NTP) on every machine",
  });
}

/** Our clock against the database's, in the middle of the round trip. */
async function aheadOf(pool: Pool, clock: Clock): Promise<number> {
  const before = clock.now().getTime();
  const found = await pool.query<{ now: Date }>("select clock_timestamp() as now");
  const after = clock.now().getTime();
  const theirs = found.rows[0]?.now.getTime() ?? after;
  return Math.round((before + after) / 2 - theirs);
}

function describeAhead(ms: number): string {
  if (Math.abs(ms) <= APART_MS_MAX) return "in step with";
  return `${String(Math.abs(Math.round(ms / 100) / 10))} s ${ms > 0 ? "ahead of" : "behind"}`;
}
