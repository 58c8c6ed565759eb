import type { Pacer, Timer } from "./pace.ts";
import type { ReadFault } from "./translate-error.ts";
import { translateError } from "./translate-error.ts";

/** What a retried read needs. `random` gives numbers in [0, 1). */
export interface RetryDeps {
  readonly pacer: Pacer;
  readonly timer: Timer;
  readonly random: () => number;
  /** Runs one task after the other. */
  readonly serially: Serially;
}

export type Serially = <T>(task: () => Promise<T>) => Promise<T>;

// Tries of one read that met 429: with the waits below about 15 s. Then the pass gives up and says
// so; going on would eat what the team's own calls need (case B26).
const RATE_LIMIT_TRIES_MAX = 5;
const RATE_LIMIT_WAIT_FIRST_MS = 1_000;
// Tries of one locked object: locks at Stripe last as long as one request, a few seconds at most.
const LOCK_TRIES_MAX = 5;
const LOCK_WAIT_FIRST_MS = 250;
// Tries after a broken connection or a 5xx: outlives a deploy at the other side (about 4 s).
const AGAIN_TRIES_MAX = 4;
const AGAIN_WAIT_FIRST_MS = 500;
// No single wait is longer than this unless Retry-After asks for it.
const WAIT_MS_MAX = 30_000;

const LIMITS: Readonly<
  Record<ReadFault["retry"], { readonly triesMax: number; readonly firstMs: number }>
> = {
  no: { triesMax: 1, firstMs: 0 },
  pause: { triesMax: RATE_LIMIT_TRIES_MAX, firstMs: RATE_LIMIT_WAIT_FIRST_MS },
  serial: { triesMax: LOCK_TRIES_MAX, firstMs: LOCK_WAIT_FIRST_MS },
  again: { triesMax: AGAIN_TRIES_MAX, firstMs: AGAIN_WAIT_FIRST_MS },
};

/**
 * Runs `attempt` in its lane until it answers or a named limit is reached. Retrying a GET is safe;
 * what is limited is the time and the reads that a pass may spend. Throws UnreadableError.
 */
export async function readWithRetries<T>(
  deps: RetryDeps,
  input: { readonly lane: string; readonly what: string; readonly attempt: () => Promise<T> },
): Promise<T> {
  const tries: Tries = { pause: 0, serial: 0, again: 0 };
  for (;;) {
    const result = await tryOnce(deps, input);
    if ("value" in result) return result.value;
    if (result.fault.retry === "serial") return retryLocked(deps, input, tries);
    await waitOrThrow(deps, result.fault, tries);
  }
}

type Tries = Record<"pause" | "serial" | "again", number>;
type Outcome<T> = { readonly value: T } | { readonly fault: ReadFault };

async function tryOnce<T>(
  deps: RetryDeps,
  input: { readonly lane: string; readonly what: string; readonly attempt: () => Promise<T> },
): Promise<Outcome<T>> {
  await deps.pacer.take(input.lane);
  try {
    const value = await input.attempt();
    deps.pacer.answered();
    return { value };
  } catch (error) {
    return { fault: translateError(error, input.what) };
  }
}

/** The further tries of a locked object: never two at once, so that they do not lock each other. */
async function retryLocked<T>(
  deps: RetryDeps,
  input: { readonly lane: string; readonly what: string; readonly attempt: () => Promise<T> },
  tries: Tries,
): Promise<T> {
  return deps.serially(async () => {
    tries.serial += 1;
    await deps.timer.sleep(backOffMs(LOCK_WAIT_FIRST_MS, tries.serial, deps.random));
    for (;;) {
      const result = await tryOnce(deps, input);
      if ("value" in result) return result.value;
      await waitOrThrow(deps, result.fault, tries);
    }
  });
}

async function waitOrThrow(deps: RetryDeps, fault: ReadFault, tries: Tries): Promise<void> {
  const { error, retry } = fault;
  if (retry === "no") throw error;
  tries[retry] += 1;
  const limit = LIMITS[retry];
  const waitMs = error.retryAfterMs ?? backOffMs(limit.firstMs, tries[retry], deps.random);
  // Even the last 429 slows the others down: they share the account's limit.
  if (retry === "pause") deps.pacer.slowDown(waitMs);
  if (tries[retry] >= limit.triesMax) throw error;
  if (retry !== "pause") await deps.timer.sleep(Math.min(waitMs, WAIT_MS_MAX));
}

/** Doubling wait with jitter between half and all of it, so that replicas do not march in step. */
function backOffMs(firstMs: number, attempt: number, random: () => number): number {
  const full = Math.min(WAIT_MS_MAX, firstMs * 2 ** (attempt - 1));
  return full * (0.5 + random() / 2);
}

/** A queue that runs its tasks one at a time, in the order they came. */
export function createSerially(): Serially {
  let last: Promise<unknown> = Promise.resolve();
  return async (task) => {
    const mine = last.then(task, task);
    // The chain must outlive a failed task; the caller gets the failure from `mine`.
    last = mine.catch(() => undefined);
    return mine;
  };
}
