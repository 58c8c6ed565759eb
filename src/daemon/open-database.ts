/** tallyd's own database: a pool on DATABASE_URL, or the embedded PostgreSQL. */
import type { Pool } from "pg";

import type { Log } from "../core/log.ts";
import type { Settings } from "../core/settings.ts";
import { startEmbedded } from "../store/embedded.ts";
import { openPool } from "../store/pool.ts";

/** An open database. */
export interface Database {
  readonly pool: Pool;
  /** With its password: never print it. */
  readonly url: string;
  /** PostgreSQL runs under this process. */
  readonly embedded: boolean;
  /** Ends the pool, then lets go of the embedded server. Never throws. */
  readonly close: () => Promise<void>;
}

// Two stand for locks and notices, four store webhooks, up to five ways out send at once, the rest
// is for jobs and pages.
const CONNECTIONS_MAX = 16;
// A connection that is stuck in a statement must not hold up the end of the process.
const POOL_END_WAIT_MS = 1_000;

/**
 * Opens the database and proves that it answers; throws what the driver says when it does not.
 * Migrates nothing.
 */
export async function openDatabase(
  settings: Pick<Settings, "databaseUrl" | "dataDir">,
  log: Log,
): Promise<Database> {
  const server =
    settings.databaseUrl === null
      ? await startEmbedded({
          dataDir: settings.dataDir,
          log: (line) => {
            log.info(line);
          },
        })
      : null;
  const url = server?.url ?? settings.databaseUrl ?? "";
  const pool = openPool({ url, applicationName: "tallyd", max: CONNECTIONS_MAX });
  const close = async (): Promise<void> => {
    await endPool(pool);
    await server?.stop().catch((error: unknown) => {
      log.warn("the embedded PostgreSQL could not be stopped", { error });
    });
  };
  try {
    await pool.query("select 1");
  } catch (error) {
    await close();
    throw error;
  }
  return { pool, url, embedded: server !== null, close };
}

/** Ends a pool; what is still checked out after a second is left to the end of the process. */
export async function endPool(pool: Pool): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, POOL_END_WAIT_MS);
  });
  await Promise.race([pool.end().catch(() => undefined), late]);
  clearTimeout(timer);
}
