import { setTimeout as sleep } from "node:timers/promises";

import type { Pool } from "pg";

const NAME = "tallyd:resolver";
// Often enough that a command does not seem to hang, seldom enough to cost nothing.
const ASK_AGAIN_MS = 250;
// A resolver at work is done within a job's time limit; after that its rows are looked at without us.
const WAIT_MS_MAX = 120_000;

/**
 * Runs `work` as the only resolver and gives its value, or `null` when another one is at work. With
 * `wait` it first lets the other one finish. The lock is the connection's: a killed replica's lock is
 * free at once. It only saves look-ups: what keeps two resolvers from writing twice is the
 * compare-and-set.
 */
export async function asOnlyResolver<T>(
  pool: Pool,
  input: { readonly wait: boolean; readonly signal?: AbortSignal },
  work: () => Promise<T>,
): Promise<T | null> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    const asksMax = input.wait ? WAIT_MS_MAX / ASK_AGAIN_MS : 1;
    for (let asks = 1; ; asks += 1) {
      const found = await client.query<{ got: boolean }>(
        "select pg_try_advisory_lock(hashtextextended($1, 0)) as got",
        [NAME],
      );
      if (found.rows[0]?.got === true) break;
      if (asks >= asksMax || input.signal?.aborted === true) return null;
      await sleep(ASK_AGAIN_MS);
    }
    try {
      return await work();
    } finally {
      await client
        .query("select pg_advisory_unlock(hashtextextended($1, 0))", [NAME])
        .catch((error: unknown) => {
          broken = error instanceof Error ? error : new Error(String(error));
        });
    }
  } finally {
    // A connection that cannot unlock is closed, which frees the lock.
    client.release(broken);
  }
}
