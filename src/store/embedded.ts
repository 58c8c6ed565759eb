import type { ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import pg from "pg";

import { EMBEDDED_ROLE, prepareCluster } from "./embedded-cluster.ts";
import type { Cluster } from "./embedded-cluster.ts";
import { readPostmasterFile, servesFolder } from "./embedded-process.ts";
import { removeStaleFile, spawnOnFreePort, startLog } from "./embedded-start.ts";
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
  rejoining: Promise<void> | undefined;
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
// Another starter was first, a killed server's children still live, or the port was just taken.
const PASSING_REASON = /lock file|shared memory|create any TCP|bind/;
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
  const durable = options.settings?.["fsync"] !== "off";
  const cluster = await prepareCluster({ dataDir: options.dataDir, durable, log: options.log });
  const held = await hold(cluster, options);
  const state: State = {
    options,
    cluster,
    held,
    stopping: false,
    restarts: 0,
    rejoining: undefined,
  };
  watch(state);
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
        if (isFinal(reason)) break;
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

/** A server that refuses its settings or its files will do so again; a lost race will not. */
function isFinal(reason: string): boolean {
  return reason.includes("FATAL") && !PASSING_REASON.test(reason);
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

/** Holds on when the server dies: the pools of this process find it again on the same port. */
function watch(state: State): void {
  state.held.client.once("end", () => {
    if (state.stopping) return;
    state.restarts += 1;
    if (state.restarts > RESTARTS_MAX) {
      state.options.log(`the embedded PostgreSQL died ${String(state.restarts)} times: giving up`);
      return;
    }
    state.options.log("the connection to the embedded PostgreSQL was lost: starting it again");
    state.rejoining = rejoin(state);
  });
}

async function rejoin(state: State): Promise<void> {
  try {
    state.held = await hold(state.cluster, { ...state.options, port: state.held.port });
    watch(state);
  } catch (error) {
    state.options.log(String(error));
  }
}

async function letGo(state: State): Promise<void> {
  if (state.stopping) return;
  state.stopping = true;
  // A server that is just coming up again has to be waited for, or nobody would stop it.
  await state.rejoining;
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
