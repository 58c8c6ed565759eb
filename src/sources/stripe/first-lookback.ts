import type { Pool } from "pg";
import type { Clock } from "../../core/clock.ts";
import { addMs } from "../../core/clock.ts";
import { oldestOpenIntent } from "../../store/open-intents.ts";

/** What decides how far the first pass goes back. */
export interface LookbackDeps {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly settings: {
    readonly firstLookbackMs: number;
    readonly rules: { readonly clockSlackMs: number };
  };
}

// Without being asked (`backfill`), nothing older than 30 days is read.
const UNASKED_MS_MAX = 30 * 86_400_000;

/**
 * Where reading begins when nothing was read before: FIRST_LOOKBACK back, and further, up to 30
 * days, as far as the oldest unresolved intent of the scope needs.
 */
export async function firstLookback(deps: LookbackDeps, scope: string): Promise<Date> {
  const now = deps.clock.now();
  const usual = addMs(now, -deps.settings.firstLookbackMs);
  const oldest = await oldestOpenIntent(deps.pool, scope);
  if (oldest === null) return usual;
  // Rows of the team's table carry its clock, which may run ahead of Stripe's.
  const needed = addMs(oldest, -deps.settings.rules.clockSlackMs);
  const furthest = addMs(now, -UNASKED_MS_MAX);
  const bounded = needed > furthest ? needed : furthest;
  return bounded < usual ? bounded : usual;
}
