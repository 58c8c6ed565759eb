import type { ChildProcess } from "node:child_process";
import { readFile, unlink, writeFile } from "node:fs/promises";
import { Socket, createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import pg from "pg";

import { EMBEDDED_ROLE, prepareCluster } from "./embedded-cluster.ts";
import type { Cluster } from "./embedded-cluster.ts";
import {
  postmasterPath,
  readPostmasterFile,
  servesFolder,
  spawnServer,
} from "./embedded-process.ts";
import { EmbeddedError } from "./errors.ts";
import { sqlState } from "./tx.ts";

/** Options of {@link startEmbedded}. */
export interface EmbeddedOptions {
  /** Everything is kept below this folder; made when absent. */
  readonly dataDir: string;
  /** Port on 127.0.0.1. Default: the one used last time when it is free, else any free one. */
  readonly port?: number;
  /** Server settings (`postgresql.conf` names) for this start, e.g. `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Gets one line for each thing worth telling a person. */
  readonly log: (line: string) => void;
}

/** A held embedded server. */
export interface Embedded {
  /** Connection URL, with the password: never print it. */
  readonly url: string;
  /** Lets go; the last holder stops the server and waits until it is down. */
  readonly stop: () => Promise<void>;
}

interface Held {
  readonly client: pg.Client;
  readonly socket: Socket;
  readonly pid: number;
  readonly port: number;
}

interface State {
  readonly options: EmbeddedOptions;
  readonly cluster: Cluster;
  held: Held;
  stopping: boolean;
  restarts: number;
}

// Database of the returned URL: tallyd's schema, and the team's table where there is no other.
const DATABASE_NAME = "tallyd";
// Crash recovery replays at most about one max_wal_size (1 GB) of log; that has taken a minute.
const START_WAIT_MAX_MS = 120_000;
// A fast shutdown writes one checkpoint; after this it is made to stop without one.
const STOP_WAIT_MAX_MS = 30_000;
// An immediate shutdown only has to kill its children.
const KILL_WAIT_MAX_MS = 10_000;
// A server that ends at once is tried again: the children of a killed one may live a moment more.
const START_ATTEMPTS_MAX = 10;
const START_PAUSE_MS = 1_000;
const POLL_MS = 50;
const CONNECT_WAIT_MAX_MS = 5_000;
// A server that dies five times under one process will not be saved by a sixth start.
const RESTARTS_MAX = 5;
// Every holder holds this advisory lock shared; whoever gets it alone is the last one.
const HOLDER_LOCK = "hashtextextended('tallyd:embedded-holder', 0)";

/**
 * Starts or joins the embedded PostgreSQL below `dataDir` and creates the database `tallyd`.
 *
 * Any number of processes may hold one folder at once. The first starts the server, the others
 * join it, and it is stopped by whoever lets go last, whether or not it was the starter. The count
 * is kept by PostgreSQL itself as one shared lock per holder's connection, so a killed process
 * counts no more the moment it is gone. A server whose holders were all killed goes on running and
 * is joined by the next start. A server that dies under its holder is started again on its port.
 *
 * Throws `EmbeddedError` when it cannot be had within two minutes, with the reason.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (process.platform === "win32") {
    throw new EmbeddedError("the embedded PostgreSQL does not run on Windows: set DATABASE_URL");
  }
  const cluster = await prepareCluster(options.dataDir, options.log);
  const held = await hold(cluster, options);
  const state: State = { options, cluster, held, stopping: false, restarts: 0 };
  watch(state, held);
  return {
    url: urlOf(cluster, held.port, DATABASE_NAME),
    stop: () => letGo(state),
  };
}

function urlOf(cluster: Cluster, port: number, database: string): string {
  return `postgres://${EMBEDDED_ROLE}:${cluster.password}@127.0.0.1:${String(port)}/${database}`;
}

/** Joins the running server, or starts one, until a holder's connection stands. */
async function hold(cluster: Cluster, options: EmbeddedOptions): Promise<Held> {
  const deadline = performance.now() + START_WAIT_MAX_MS;
  let child: ChildProcess | undefined;
  let attempts = 0;
  let reason = "it did not come up";
  while (performance.now() < deadline && attempts <= START_ATTEMPTS_MAX) {
    const file = await readPostmasterFile(cluster.data);
    if (file !== undefined && (await servesFolder(file.pid, cluster.data))) {
      const joined = await join(cluster, file.port, file.pid);
      if (typeof joined !== "string") return joined;
      reason = joined;
    } else if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      // A child that ended lost the race for the folder, or could not start: its output says why.
      attempts += 1;
      if (child !== undefined) {
        reason = await startLog(cluster);
        await sleep(START_PAUSE_MS);
      }
      if (file !== undefined) await removeStaleFile(cluster.data, file.pid, options.log);
      child = await spawnOnFreePort(cluster, options);
    }
    await sleep(POLL_MS);
  }
  throw new EmbeddedError(
    `the embedded PostgreSQL in ${cluster.root} cannot be used after ${String(attempts)} starts ` +
      `(limits: ${String(START_ATTEMPTS_MAX)} starts, ${String(START_WAIT_MAX_MS)} ms): ${reason}`,
  );
}

async function startLog(cluster: Cluster): Promise<string> {
  const text = await readFile(path.join(cluster.root, "start.log"), "utf8").catch(() => "");
  return text.trim() === "" ? "it ended at once, without a word" : text.trim();
}

/** Returns the held connection, or the reason why there is none yet. */
async function join(cluster: Cluster, port: number, pid: number): Promise<Held | string> {
  const socket = new Socket();
  const client = new pg.Client({
    stream: () => socket,
    connectionString: urlOf(cluster, port, "postgres"),
    application_name: "tallyd-embedded-holder",
    connectionTimeoutMillis: CONNECT_WAIT_MAX_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    // While the last holder shuts the server down this waits, and then loses its connection.
    await client.query(`select pg_advisory_lock_shared(${HOLDER_LOCK})`);
    await ensureDatabase(client);
    // The connection lasts as long as the process and must not be what keeps it alive.
    socket.unref();
    return { client, socket, pid, port };
  } catch (error) {
    await client.end().catch(() => undefined);
    if (sqlState(error) === "28P01") {
      throw new EmbeddedError(
        `the server of ${cluster.data} refuses the password in ${cluster.root}/password`,
        { cause: error },
      );
    }
    return `process ${String(pid)} serves it on port ${String(port)} and says: ${String(error)}`;
  }
}

async function ensureDatabase(client: pg.Client): Promise<void> {
  const found = await client.query("select from pg_database where datname = $1", [DATABASE_NAME]);
  if (found.rowCount === 1) return;
  try {
    await client.query(`create database ${DATABASE_NAME} template template0`);
  } catch (error) {
    // Another holder made it in between: duplicate_database, or the same as a unique violation.
    if (!["42P04", "23505"].includes(sqlState(error) ?? "")) throw error;
  }
}

async function spawnOnFreePort(cluster: Cluster, options: EmbeddedOptions): Promise<ChildProcess> {
  const portFile = path.join(cluster.root, "port");
  const remembered = Number(await readFile(portFile, "utf8").catch(() => "0"));
  const port = options.port ?? (await freePort(remembered));
  await writeFile(portFile, `${String(port)}\n`);
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: "127.0.0.1",
    // No socket file: folders for those are shared with other servers and limited in length.
    unix_socket_directories: "",
    // One log file for each day of the week, each emptied when its day comes again.
    logging_collector: "on",
    log_filename: "postgresql-%a.log",
    log_rotation_age: "1d",
    log_rotation_size: "0",
    log_truncate_on_rotation: "on",
    ...options.settings,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return spawnServer({
    file: cluster.postgres,
    args: ["-D", cluster.data, ...flags],
    runAs: cluster.runAs,
    logFile: path.join(cluster.root, "start.log"),
  });
}

/** The wished port when it is free on the loopback, else one that the system picks. */
async function freePort(wished: number): Promise<number> {
  const valid = Number.isSafeInteger(wished) && wished > 0 && wished < 65_536;
  return (valid ? await tryPort(wished) : undefined) ?? (await tryPort(0)) ?? wished;
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => {
      resolve(undefined);
    });
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        resolve(typeof address === "object" && address !== null ? address.port : undefined);
      });
    });
  });
}

/**
 * Removes the `postmaster.pid` of a dead server. PostgreSQL does so itself unless the number now
 * belongs to another process of the same user, as after a restart of a container. Its second lock
 * (shared memory) still refuses a folder whose children live on.
 */
async function removeStaleFile(
  data: string,
  pid: number,
  log: (line: string) => void,
): Promise<void> {
  // Read again right before: a server may have started and written its own file meanwhile.
  const now = await readPostmasterFile(data);
  if (now?.pid !== pid || (await servesFolder(pid, data))) return;
  log(`removing postmaster.pid of process ${String(pid)}, which does not serve ${data}`);
  await unlink(postmasterPath(data)).catch(() => undefined);
}

/** Holds on when the server dies: the pools of this process find it again on the same port. */
function watch(state: State, held: Held): void {
  held.client.once("end", () => {
    if (state.stopping) return;
    state.restarts += 1;
    if (state.restarts > RESTARTS_MAX) {
      state.options.log(`the embedded PostgreSQL died ${String(state.restarts)} times: giving up`);
      return;
    }
    state.options.log("the connection to the embedded PostgreSQL was lost: starting it again");
    const options = { ...state.options, port: held.port };
    hold(state.cluster, options).then(
      async (again) => {
        state.held = again;
        watch(state, again);
        // Somebody let go while it came up.
        if (state.stopping) await leave(state);
      },
      (error: unknown) => {
        state.options.log(String(error));
      },
    );
  });
}

async function letGo(state: State): Promise<void> {
  if (state.stopping) return;
  state.stopping = true;
  await leave(state);
}

async function leave(state: State): Promise<void> {
  const { client, socket, pid } = state.held;
  // From here on the process has to wait for the answers.
  socket.ref();
  const last = await isLastHolder(client);
  if (last && (await servesFolder(pid, state.cluster.data))) {
    await shutDown(pid, state.cluster.data, state.options.log);
  }
  await client.end().catch(() => undefined);
}

/** Swaps the shared lock for the exclusive one; false while anybody else still holds on. */
async function isLastHolder(client: pg.Client): Promise<boolean> {
  try {
    await client.query(`select pg_advisory_unlock_shared(${HOLDER_LOCK})`);
    const found = await client.query<{ last: boolean }>(
      `select pg_try_advisory_lock(${HOLDER_LOCK}) as last`,
    );
    return found.rows[0]?.last === true;
  } catch {
    // The server is already down or going down; there is nothing left to stop.
    return false;
  }
}

async function shutDown(pid: number, data: string, log: (line: string) => void): Promise<void> {
  // SIGINT is PostgreSQL's fast shutdown, SIGQUIT the one that recovers at the next start.
  process.kill(pid, "SIGINT");
  if (await isDown(pid, data, STOP_WAIT_MAX_MS)) return;
  log(`the embedded PostgreSQL did not stop in ${String(STOP_WAIT_MAX_MS)} ms: forcing it`);
  process.kill(pid, "SIGQUIT");
  if (await isDown(pid, data, KILL_WAIT_MAX_MS)) return;
  throw new EmbeddedError(`the embedded PostgreSQL (process ${String(pid)}) does not stop`);
}

async function isDown(pid: number, data: string, waitMaxMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMaxMs;
  while (performance.now() < deadline) {
    const file = await readPostmasterFile(data);
    if (file?.pid !== pid && !(await servesFolder(pid, data))) return true;
    await sleep(POLL_MS);
  }
  return false;
}
