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
// Stripe's own time-out of a request.
const PROVIDER_MS = 80 * SECOND_MS;
// Stripe (API v1) may forget a key from this age on.
const KEY_MS = 24 * HOUR_MS;

/**
 * The limits in force. Throws `invalid` on what is no time, and when a look-up could overtake the
 * call that it is about.
 */
export function limitsOf(given: Partial<Limits> = {}): Limits {
  const limits = { ...LIMITS, ...given };
  for (const [name, value] of Object.entries(limits)) {
    if (Number.isFinite(value) && value >= 0) continue;
    throw refused(name, value, "a number of milliseconds, 0 or more, is allowed");
  }
  const { holdMs, timeoutMs, inFlightMs, settleMs } = limits;
  const longest = holdMs + 2 * timeoutMs + SDK_PAUSE_MS;
  const why = "or an intent is looked up while it is being sent";
  if (inFlightMs < longest) {
    const sum = "holdMs, two attempts of timeoutMs and the pause between them";
    throw refused("inFlightMs", inFlightMs, `at least ${longest} is allowed (${sum}), ${why}`);
  }
  // An attempt that nobody waits for any more is still running at the provider.
  if (settleMs >= PROVIDER_MS) return limits;
  throw refused("settleMs", settleMs, `at least ${PROVIDER_MS} is allowed, ${why}`);
}

/** The limits of a payment by Stripe. Throws `invalid`, also when a key would outlive itself. */
export function stripeLimitsOf(given?: Partial<Limits>): Limits {
  const limits = limitsOf(given);
  if (limits.horizonMs < KEY_MS) return limits;
  const why = "Stripe keeps a key for 24 hours, and then the same key pays again";
  throw refused("horizonMs", limits.horizonMs, `less than ${KEY_MS} is allowed: ${why}`);
}

function refused(name: string, value: number, rule: string): LedgerError {
  return new LedgerError("invalid", `${name} is ${value}: ${rule}`);
}
