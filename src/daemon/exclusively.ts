import { setTimeout as sleep } from "node:timers/promises";

import type { LockSession } from "../scheduler/lock-session.ts";

// Short beside the work that the lock guards (tens of milliseconds to a second).
const ASK_AGAIN_MS = 20;

/**
 * Runs `work` under a session lock and gives its value. Without `wait` it gives null when another
 * holds the lock; with it, it asks again until the signal is aborted.
 */
export async function exclusively<T>(
  locks: LockSession,
  options: { readonly name: string; readonly wait: boolean; readonly signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T | null> {
  while (!(await locks.tryLock(options.name))) {
    if (!options.wait) return null;
    options.signal.throwIfAborted();
    await sleep(ASK_AGAIN_MS);
  }
  try {
    return await work();
  } finally {
    await locks.unlock(options.name);
  }
}
