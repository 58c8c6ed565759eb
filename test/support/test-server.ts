/** The PostgreSQL server of a test run: an embedded one, or one that somebody already runs. */
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm, statfs } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { startEmbedded } from "../../src/store/embedded.ts";
import { openPool } from "../../src/store/pool.ts";

/** A server that the run may do everything with. */
export interface TestServer {
  /** Database `postgres`; the role is a superuser. */
  readonly url: string;
  /** Stops an embedded server; leaves another one running. */
  readonly release: () => Promise<void>;
}

/** Setting that names the server to test against. */
export const SERVER_SETTING = "TALLYD_TEST_SERVER_URL";

// Data of a test run is thrown away, so nothing has to survive a crash; 200 connections serve
// every file's pools on the few workers that run at once.
const EMBEDDED_SETTINGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "200",
  shared_buffers: "256MB",
  autovacuum: "off",
  max_wal_size: "256MB",
} as const;
// A run takes up to one gigabyte, most of it write-ahead log; the rest of the machine needs some.
const MEMORY_MIN = 4 * 1024 ** 3;
// Four workers with a file each, and a file opens at most some forty connections.
const CONNECTIONS_MIN = 150;

/** The server at `url`, or a new embedded one when there is no `url`. Throws what is missing. */
export async function testServer(url: string | undefined): Promise<TestServer> {
  if (url === undefined || url === "") return embeddedServer();
  const admin = withDatabase(url, "postgres");
  const missing = await missingFor(admin);
  if (missing !== "") throw new Error(`${SERVER_SETTING} names a server that ${missing}`);
  return { url: admin, release: () => Promise.resolve() };
}

/** The same server, another database. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}

/** A database name of this run's own: two runs may use one server. */
export function ownName(stem: string): string {
  return `${stem}_${String(process.pid)}_${randomBytes(6).toString("hex")}`;
}

async function embeddedServer(): Promise<TestServer> {
  const dataDir = await mkdtemp(path.join(await roomyFolder(), "tallyd-test-"));
  // Run as root, the server has another user, who must be able to enter.
  await chmod(dataDir, 0o711);
  const log = (): void => undefined;
  const server = await startEmbedded({ dataDir, settings: EMBEDDED_SETTINGS, log });
  const release = async (): Promise<void> => {
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return { url: withDatabase(server.url, "postgres"), release };
}

/** Memory where the machine has plenty of it: a run makes a hundred databases of 430 files each. */
async function roomyFolder(): Promise<string> {
  const memory = "/dev/shm";
  const found = await statfs(memory).catch(() => null);
  return found !== null && found.bavail * found.bsize >= MEMORY_MIN ? memory : os.tmpdir();
}

/** What the tests need and the server lacks, as words after "a server that"; "" = nothing. */
async function missingFor(url: string): Promise<string> {
  const pool = openPool({ url, applicationName: "tallyd-test-setup", max: 1 });
  try {
    const found = await pool.query<{ version: number; super: boolean; utf8: boolean; max: number }>(
      `select current_setting('server_version_num')::int as version,
              current_setting('is_superuser') = 'on' as super,
              (select pg_encoding_to_char(encoding) from pg_database
                where datname = 'template0') = 'UTF8' as utf8,
              current_setting('max_connections')::int as max`,
    );
    const server = found.rows[0];
    if (server === undefined) return "gives no answer";
    if (server.version < 140_000) return "is older than PostgreSQL 14";
    if (!server.super) return "does not let this role do everything: give a superuser's URL";
    if (!server.utf8) return "was not initialised with the encoding UTF8";
    if (server.max >= CONNECTIONS_MIN) return "";
    return `allows ${server.max} connections: set max_connections to ${CONNECTIONS_MIN} or more`;
  } finally {
    await pool.end();
  }
}
