import { randomBytes } from "node:crypto";

import type { Pool } from "pg";

/**
 * The sign of life of one process: a session lock on a connection that does nothing else. Claims
 * name the lock, so a killed process's claims are seen as dead at once, with no lease to wait out.
 */
export interface Session {
  /**
   * The lock that this process holds now, as text of a bigint. Throws when there is no database.
   */
  readonly holder: () => Promise<string>;
  /** Gives the connection back, which frees the lock. */
  readonly close: () => void;
}

interface Held {
  readonly key: string;
  readonly letGo: () => void;
}

/** Makes the session; it connects at its first use and again after a lost connection. */
export function makeSession(pool: Pick<Pool, "connect">): Session {
  let held: Promise<Held> | null = null;
  const drop = (which: Promise<Held> | null): void => {
    if (held === which) held = null;
    which
      ?.then(({ letGo }) => {
        letGo();
      })
      .catch(ignoreNeverOpened);
  };
  const open = (): Promise<Held> => {
    const mine: Promise<Held> = hold(pool, () => {
      drop(mine);
    });
    return mine;
  };
  return {
    holder: async () => {
      const mine = (held ??= open());
      try {
        return (await mine).key;
      } catch (error) {
        drop(mine);
        throw error;
      }
    },
    close: () => {
      drop(held);
    },
  };
}

async function hold(pool: Pick<Pool, "connect">, lost: () => void): Promise<Held> {
  const client = await pool.connect();
  let released = false;
  const letGo = (): void => {
    if (released) return;
    released = true;
    // Closed and not reused: that frees the lock, whatever state the connection is in.
    client.release(true);
  };
  // A connection that breaks has lost the lock: the next claim takes a new one under a new name.
  client.once("error", lost);
  client.once("end", lost);
  const key = randomBytes(8).readBigInt64BE().toString();
  try {
    const got = await client.query<{ got: boolean }>(
      "select pg_try_advisory_lock($1::bigint) as got",
      [key],
    );
    if (got.rows[0]?.got !== true) throw new Error("a lock of a random name is held already");
    return { key, letGo };
  } catch (error) {
    letGo();
    throw error;
  }
}

function ignoreNeverOpened(): void {
  // On purpose empty: whoever asked for the holder was told.
}

/**
 * SQL that is true while the process lives that took the lock in `column`. A look into pg_locks and
 * no try at the lock: two who look at once must not take each other for the holder.
 */
export function isAliveSql(column: string): string {
  return `exists (
      select from pg_locks l
       where l.locktype = 'advisory'
         and l.granted
         and l.objsubid = 1
         and l.database = (select d.oid from pg_database d where d.datname = current_database())
         and l.classid::bigint = (${column} >> 32) & 4294967295
         and l.objid::bigint = ${column} & 4294967295)`;
}
