import { LedgerError } from "./errors.ts";

/** The ledger's times, in milliseconds. */
export interface Limits {
  /** Time-out of one attempt. */
  readonly timeoutMs: number;
  /** How long a worker may take from its admission to sending. */
  readonly holdMs: number;
  /** In flight longer than this: its worker is gone, and the intent is looked up. */
  readonly inFlightMs: number;
  /** After the last change of the row nothing of its can still arrive at the provider. */
  readonly settleMs: number;
  /** Age of the intent from which its key is not sent any more. */
  readonly horizonMs: number;
  /** How far the clocks of provider and database may differ. */
  readonly clockSlackMs: number;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The limits that hold where none are given. */
export const LIMITS: Limits = {
  // Slow banks answer within half a minute; Stripe itself gives up after about 80 seconds.
  timeoutMs: MINUTE_MS,
  // Far above any pause of a healthy process; a machine that slept must not send what it held.
  holdMs: 10 * SECOND_MS,
  // The hold, two attempts (a closed connection is tried again once) and the pause between them,
  // twice over.
  inFlightMs: 5 * MINUTE_MS,
  // tallyd's ATTEMPT_WINDOW: what was sent before is done or gone by then.
  settleMs: 6 * MINUTE_MS,
  // Stripe keeps a key for at least 24 hours; four of them are left for clocks and slow requests.
  horizonMs: 20 * HOUR_MS,
  // tallyd's CLOCK_SLACK.
  clockSlackMs: 5 * MINUTE_MS,
};

// The SDK's longest pause before it tries a closed connection again.
const SDK_PAUSE_MS = 5 * SECOND_MS;

/** The limits in force. Throws `invalid` when a look-up could overtake the call it is about. */
export function limitsOf(given: Partial<Limits> = {}): Limits {
  const limits = { ...LIMITS, ...given };
  const longest = limits.holdMs + 2 * limits.timeoutMs + SDK_PAUSE_MS;
  if (limits.inFlightMs >= longest) return limits;
  throw new LedgerError(
    "invalid",
    `inFlightMs is ${limits.inFlightMs}: at least ${longest} is allowed (holdMs, two attempts of ` +
      "timeoutMs and the pause between them), or an intent is looked up while it is being sent",
  );
}
