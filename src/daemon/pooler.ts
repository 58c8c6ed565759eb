/** A connection of the pool, as far as it is asked here. */
interface Session {
  readonly query: (text: string) => Promise<{ readonly rows: readonly { pid: number }[] }>;
  readonly release: () => void;
}

// A pooler may have several idle server connections; it hands out the same one soon enough.
const TRIES = 4;

/**
 * Does a pooler in transaction mode stand between us and PostgreSQL? Then two connections that
 * are open at once share one server process, which PostgreSQL itself never does. Session locks
 * and LISTEN do not work behind such a pooler (src/README.md, more than one machine).
 */
export async function sharesSessions(pool: {
  readonly connect: () => Promise<Session>;
}): Promise<boolean> {
  const [first, second] = [await pool.connect(), await pool.connect()];
  try {
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const [a, b] = [await backendOf(first), await backendOf(second)];
      if (a === b) return true;
    }
    return false;
  } finally {
    first.release();
    second.release();
  }
}

async function backendOf(session: Session): Promise<number> {
  const found = await session.query("select pg_backend_pid() as pid");
  return found.rows[0]?.pid ?? 0;
}

/** What is told about such a pooler. */
export const POOLER_WARNING =
  "DATABASE_URL goes through a pooler in transaction mode: session locks and LISTEN do not work " +
  "there, so two replicas may do the same work and a killed one may keep its locks. " +
  "Connect to PostgreSQL directly, or use the pooler's session mode.";
