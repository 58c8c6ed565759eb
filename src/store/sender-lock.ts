import type { Pool } from "pg";

/**
 * Runs `work` as the only sender of a channel and gives its value, or `null` when another sender is
 * at work. The lock is the connection's: a killed replica's lock is free at once.
 */
export async function asOnlySender<T>(
  pool: Pool,
  channel: string,
  work: () => Promise<T>,
): Promise<T | null> {
  const client = await pool.connect();
  const name = `tallyd:outbox:${channel}`;
  let broken: Error | undefined;
  try {
    const found = await client.query<{ got: boolean }>(
      "select pg_try_advisory_lock(hashtextextended($1, 0)) as got",
      [name],
    );
    if (found.rows[0]?.got !== true) return null;
    try {
      return await work();
    } finally {
      await client
        .query("select pg_advisory_unlock(hashtextextended($1, 0))", [name])
        .catch((error: unknown) => {
          broken = error instanceof Error ? error : new Error(String(error));
        });
    }
  } finally {
    // A connection that cannot unlock is closed, which frees the lock.
    client.release(broken);
  }
}
