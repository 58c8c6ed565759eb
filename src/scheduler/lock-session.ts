import type { Pool, PoolClient } from "pg";

/**
 * Session advisory locks on one connection of their own. PostgreSQL frees them the moment the
 * connection is gone, so the work of a killed replica is free at once and no lease has to run
 * out (src/README.md, more than one machine).
 */
export interface LockSession {
  /** True: the lock is ours now. False: somebody holds it, maybe this very session. */
  readonly tryLock: (name: string) => Promise<boolean>;
  /** Frees a lock; does nothing when it was lost. */
  readonly unlock: (name: string) => Promise<void>;
  /** Is the lock still ours, as far as this side knows? */
  readonly holds: (name: string) => boolean;
  /** Frees everything and gives the connection back. */
  readonly close: () => Promise<void>;
}

// One name space for all locks of tallyd, so that no other user of the database meets them.
const PREFIX = "tallyd:";

/**
 * Makes a lock session on a connection of `pool`, opened at the first lock and opened anew after
 * a loss. `onLost` is told which locks went with a broken connection: another replica may hold
 * them already, so whatever they guard must stop.
 */
export function createLockSession(
  pool: Pool,
  onLost: (names: readonly string[]) => void,
): LockSession {
  const held = new Set<string>();
  // Names with a request under way: session locks count per session, so asking twice would pass.
  const asked = new Set<string>();
  const inTurn = createTurns();
  const connection = createConnection(pool, () => {
    const names = [...held];
    held.clear();
    if (names.length > 0) onLost(names);
  });
  return {
    holds: (name) => held.has(name),
    tryLock: async (name) => {
      if (held.has(name) || asked.has(name)) return false;
      asked.add(name);
      try {
        const got = await inTurn(async () => requestLock(await connection.open(), name));
        if (got) held.add(name);
        return got;
      } finally {
        asked.delete(name);
      }
    },
    unlock: async (name) => {
      if (!held.delete(name)) return;
      await inTurn(async () => {
        // Lost in the meantime: then the lock is free already.
        const client = connection.current();
        await client?.query("select pg_advisory_unlock(hashtextextended($1, 0))", [PREFIX + name]);
      });
    },
    close: async () => {
      held.clear();
      await connection.close();
    },
  };
}

interface Connection {
  readonly open: () => Promise<PoolClient>;
  readonly current: () => PoolClient | undefined;
  readonly close: () => Promise<void>;
}

/** One connection, opened when it is needed and again after a loss, of which `onLost` is told. */
function createConnection(pool: Pool, onLost: () => void): Connection {
  let connecting: Promise<PoolClient> | undefined;
  let current: PoolClient | undefined;
  const connect = async (): Promise<PoolClient> => {
    const client = await pool.connect();
    const lose = (error: Error): void => {
      // A connection's end is told twice (error, end); after close it is expected.
      if (current !== client) return;
      current = undefined;
      connecting = undefined;
      client.release(error);
      onLost();
    };
    client.once("error", lose);
    client.once("end", () => {
      lose(new Error("the connection ended"));
    });
    current = client;
    return client;
  };
  return {
    current: () => current,
    open: () => {
      if (connecting !== undefined) return connecting;
      const attempt = connect();
      connecting = attempt;
      attempt.catch(() => {
        if (connecting === attempt) connecting = undefined;
      });
      return attempt;
    },
    close: async () => {
      const open = connecting;
      if (open === undefined) return;
      connecting = undefined;
      const client = await open;
      current = undefined;
      // Ending the connection frees every lock, also those of a request that is under way.
      client.release(true);
    },
  };
}

/** Runs one piece of work after the other: a connection takes one statement at a time. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let turn: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  };
}

async function requestLock(client: PoolClient, name: string): Promise<boolean> {
  const found = await client.query<{ got: boolean }>(
    "select pg_try_advisory_lock(hashtextextended($1, 0)) as got",
    [PREFIX + name],
  );
  return found.rows[0]?.got === true;
}
