/** What the next sweep of the events list depends on. */
export interface BeatInput {
  /** The configured beat (EVENTS_BEAT), milliseconds. */
  readonly beatMs: number;
  /** The delay before the last sweep; `null`: there was none. */
  readonly previousMs: number | null;
  /** Events that the last sweep found and webhooks had not brought, past their grace. */
  readonly missed: number;
  /** Reads that one sweep over all scopes takes. */
  readonly readsPerSweep: number;
  /** Reads that Stripe allows in 30 days, of the scope that has used the largest share. */
  readonly allowed: bigint;
  readonly used: bigint;
}

const MS_PER_MONTH = 30 * 86_400_000;
// After a miss the sweep comes this much more often, until a sweep finds nothing missed.
const MISS_SPEED_UP = 4;
// Never oftener: a look at the list every half minute is what a webhook would have saved.
const DELAY_MS_MIN = 30_000;
// Never more rarely: a dead webhook endpoint must be noticed within the hour (invariant 11).
const DELAY_MS_MAX = 30 * 60_000;
// Shares of the read allocation that sweeping may use: most is left for walks, look-ups and the
// team's own reads; while webhooks fail the sweep is the only fast path and may take more.
const SHARE_QUIET = 0.4;
const SHARE_MISSING = 0.8;
// Beyond this use of the allocation the sweep is as slow as it may be.
const USED_SHARE_MAX = 0.9;

/**
 * Milliseconds until the next sweep: slower and slower while webhooks bring everything (up to half
 * an hour or the configured beat), at once faster after a miss, and never faster than the budget
 * allows.
 */
export function nextSweepDelay(input: BeatInput): number {
  const slowest = Math.max(DELAY_MS_MAX, input.beatMs);
  if (Number(input.used) >= Number(input.allowed) * USED_SHARE_MAX) return slowest;
  const share = input.missed > 0 ? SHARE_MISSING : SHARE_QUIET;
  const sweepsPerMonth = (Number(input.allowed) * share) / Math.max(1, input.readsPerSweep);
  const affordable = MS_PER_MONTH / Math.max(1, sweepsPerMonth);
  const wanted = wantedDelay(input, slowest);
  return Math.round(Math.min(slowest, Math.max(wanted, affordable, DELAY_MS_MIN)));
}

function wantedDelay(input: BeatInput, slowest: number): number {
  if (input.missed > 0) return input.beatMs / MISS_SPEED_UP;
  if (input.previousMs === null) return input.beatMs;
  return Math.min(slowest, Math.max(input.beatMs, input.previousMs * 2));
}
