import { setTimeout as sleep } from "node:timers/promises";

import type { Pool, PoolClient } from "pg";

const NAME = "tallyd:resolver";
// Often enough that a command does not seem to hang, seldom enough to cost nothing.
const ASK_AGAIN_MS = 250;
// A resolver at work is done within a job's time limit; after that its rows are looked at without
// us.
const WAIT_MS_MAX = 120_000;

/**
 * Runs `work` as the only resolver and gives its value, or `null` when another one is at work. With
 * `wait` it first lets the other one finish. The lock is the connection's: a killed replica's lock
 * is free at once. It only saves look-ups: what keeps two resolvers from writing twice is the
 * compare-and-set.
 */
export async function asOnlyResolver<T>(
  pool: Pool,
  input: { readonly wait: boolean; readonly signal?: AbortSignal },
  work: () => Promise<T>,
): Promise<T | null> {
  const asksMax = input.wait ? WAIT_MS_MAX / ASK_AGAIN_MS : 1;
  for (let asks = 1; ; asks += 1) {
    const client = await tryLock(pool);
    if (client !== null) {
      try {
        return await work();
      } finally {
        await unlock(client);
      }
    }
    if (asks >= asksMax || input.signal?.aborted === true) return null;
    // Without a connection meanwhile: whoever waits must not starve the one at work.
    await sleep(ASK_AGAIN_MS);
  }
}

/** A connection that holds the lock; `null`: another one does. */
async function tryLock(pool: Pool): Promise<PoolClient | null> {
  const client = await pool.connect();
  try {
    const found = await client.query<{ got: boolean }>(
      "select pg_try_advisory_lock(hashtextextended($1, 0)) as got",
      [NAME],
    );
    if (found.rows[0]?.got === true) return client;
    client.release();
    return null;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

async function unlock(client: PoolClient): Promise<void> {
  try {
    await client.query("select pg_advisory_unlock(hashtextextended($1, 0))", [NAME]);
    client.release();
  } catch {
    // A connection that cannot unlock is closed, which frees the lock.
    client.release(true);
  }
}
