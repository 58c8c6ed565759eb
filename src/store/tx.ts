import { setTimeout as sleep } from "node:timers/promises";

import type { Pool, PoolClient } from "pg";

/** How a transaction sees the others. */
export type Isolation = "read committed" | "repeatable read" | "serializable";

/** Options of {@link withTx}. */
export interface TxOptions {
  /** The server refuses every write. Default false. */
  readonly readOnly?: boolean;
  /** Default `read committed`. */
  readonly isolation?: Isolation;
  /** Longest run of one statement in milliseconds; the server cancels it after. Default: none. */
  readonly statementTimeoutMs?: number;
}

// A transaction that lost five times in a row meets a constant rival: more tries would only heat.
const TX_ATTEMPTS_MAX = 5;
// First pause after a lost race; it doubles each time, so all five tries wait 150 ms at most.
const TX_PAUSE_FIRST_MS = 10;

// serialization_failure and deadlock_detected: the server undid everything, so a rerun is safe.
const LOST_RACE_STATES: ReadonlySet<string> = new Set(["40001", "40P01"]);

/** True when the server undid the transaction for the sake of another: a rerun may succeed. */
export function isLostRace(error: unknown): boolean {
  return LOST_RACE_STATES.has(sqlState(error) ?? "");
}

/** The five-letter SQLSTATE of a server error, undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/**
 * Runs `fn` in one transaction and commits it; any error rolls back and is thrown on. Inside, the
 * time zone is UTC, so that a cast to a date means the same on every server. A lost race
 * (serialization failure, deadlock) runs `fn` again from the start, at most five times, so `fn`
 * must have no effect outside the transaction and must call no network.
 */
export async function withTx<T>(
  pool: Pool,
  fn: (client: PoolClient) => Promise<T>,
  options: TxOptions = {},
): Promise<T> {
  for (let attempt = 1; attempt < TX_ATTEMPTS_MAX; attempt += 1) {
    try {
      return await runOnce(pool, fn, options);
    } catch (error) {
      if (!isLostRace(error)) throw error;
      await sleep(TX_PAUSE_FIRST_MS * 2 ** (attempt - 1));
    }
  }
  return runOnce(pool, fn, options);
}

async function runOnce<T>(
  pool: Pool,
  fn: (client: PoolClient) => Promise<T>,
  options: TxOptions,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query(beginStatement(options));
    const value = await fn(client);
    const end = await client.query("commit");
    // The server answers a commit of a failed transaction with ROLLBACK and no error.
    if (end.command !== "COMMIT") {
      throw new Error("the transaction was rolled back: a failed statement in it was swallowed");
    }
    return value;
  } catch (error) {
    broken = await rollBack(client);
    throw error;
  } finally {
    client.release(broken);
  }
}

function beginStatement(options: TxOptions): string {
  const isolation = options.isolation ?? "read committed";
  const mode = options.readOnly === true ? "read only" : "read write";
  const timeoutMs = options.statementTimeoutMs;
  if (timeoutMs !== undefined && (!Number.isInteger(timeoutMs) || timeoutMs < 0)) {
    throw new RangeError(`statementTimeoutMs ${String(timeoutMs)}: a whole number >= 0 is allowed`);
  }
  // One message, one round trip. Values are from the lists above, so nothing needs quoting.
  return (
    `begin isolation level ${isolation} ${mode}; set local time zone 'UTC'` +
    (timeoutMs === undefined ? "" : `; set local statement_timeout = ${String(timeoutMs)}`)
  );
}

/** Rolls back; returns the error when even that failed, so that the connection is thrown away. */
async function rollBack(client: PoolClient): Promise<Error | undefined> {
  try {
    await client.query("rollback");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
