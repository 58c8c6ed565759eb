import { setTimeout as delay } from "node:timers/promises";
import { UnreadableError } from "../../core/errors.ts";

/** Elapsed time and waiting. Not a Clock: pacing needs a time that nobody sets back. */
export interface Timer {
  /** Milliseconds since any fixed moment, never going back. */
  readonly nowMs: () => number;
  /** Waits `ms` milliseconds. */
  readonly sleep: (ms: number) => Promise<void>;
}

/** The machine's monotonic timer; an aborted `signal` ends a wait with its AbortError. */
export function systemTimer(signal?: AbortSignal): Timer {
  return {
    nowMs: () => performance.now(),
    sleep: async (ms) => {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    },
  };
}

/** Gives out permission to read, lane by lane (one lane = one scope and endpoint). */
export interface Pacer {
  /** Resolves when the lane may read. Throws UnreadableError `rate_limit` before a long wait. */
  readonly take: (lane: string) => Promise<void>;
  /** Stripe answered 429: no lane reads for `waitMs`, and all of them read more slowly after. */
  readonly slowDown: (waitMs: number) => void;
  /** A read was answered; enough of them in a row bring the speed back. */
  readonly answered: () => void;
}

const MS_PER_SECOND = 1_000;
// A quarter of a second's worth may go at once: with the default of 20/s the first second then
// holds 25 reads, which is Stripe's limit per endpoint (Stripe's documentation, rate limits).
const BURST_SHARE = 0.25;
// Slowest speed after repeated 429s: a sixteenth still moves, and leaves the rest to the user.
const SLOWNESS_MAX = 16;
// Answers in a row before the speed doubles again: two seconds' worth of the default speed.
const ANSWERS_TO_RECOVER = 40;
// Speed to slow down from where no limit is set: Stripe's own limit per endpoint.
const UNLIMITED_BASE_PER_SECOND = 25;
// A pass that waits longer than this holds its scope; it fails instead and comes again later.
const PAUSE_MS_MAX = 60_000;
// Each round means that one more 429 came while this lane waited; more is a closed door.
const PAUSE_ROUNDS_MAX = 20;

/**
 * A token bucket per lane in front of one pause for all lanes. `readsPerSecond` 0 = no limit until
 * the first 429.
 */
export function createPacer(options: {
  readonly readsPerSecond: number;
  readonly timer: Timer;
}): Pacer {
  const { readsPerSecond, timer } = options;
  const nextByLane = new Map<string, number>();
  let pausedUntil = 0;
  let slowness = 1;
  let streak = 0;

  const intervalMs = (): number => {
    if (readsPerSecond > 0) return (MS_PER_SECOND / readsPerSecond) * slowness;
    return slowness === 1 ? 0 : (MS_PER_SECOND / UNLIMITED_BASE_PER_SECOND) * slowness;
  };

  const reserve = (lane: string): number => {
    const now = timer.nowMs();
    const interval = intervalMs();
    const burstMs = slowness === 1 ? MS_PER_SECOND * BURST_SHARE : 0;
    const next = nextByLane.get(lane) ?? 0;
    const start = Math.max(now, next - burstMs);
    nextByLane.set(lane, Math.max(start, next) + interval);
    return start - now;
  };

  const waitOutPause = async (): Promise<void> => {
    for (let round = 0; round < PAUSE_ROUNDS_MAX; round += 1) {
      const waitMs = pausedUntil - timer.nowMs();
      if (waitMs <= 0) return;
      if (waitMs > PAUSE_MS_MAX) throw tooManyReads(waitMs);
      await timer.sleep(waitMs);
    }
    throw tooManyReads(Math.max(0, pausedUntil - timer.nowMs()));
  };

  return {
    take: async (lane) => {
      await waitOutPause();
      const waitMs = reserve(lane);
      if (waitMs > 0) await timer.sleep(waitMs);
      await waitOutPause();
    },
    slowDown: (waitMs) => {
      pausedUntil = Math.max(pausedUntil, timer.nowMs() + waitMs);
      slowness = Math.min(SLOWNESS_MAX, slowness * 2);
      streak = 0;
    },
    answered: () => {
      streak += 1;
      if (streak < ANSWERS_TO_RECOVER) return;
      streak = 0;
      slowness = Math.max(1, slowness / 2);
    },
  };
}

function tooManyReads(waitMs: number): UnreadableError {
  return new UnreadableError(
    "rate_limit",
    `Stripe asks to read nothing for another ${String(Math.ceil(waitMs / MS_PER_SECOND))} s; ` +
      "waiting is bounded, so this pass ends and a later one continues",
    { retryAfterMs: waitMs },
  );
}
