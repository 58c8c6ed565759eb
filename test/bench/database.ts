import type { Pool } from "pg";

import { migrate } from "../../src/store/migrate.ts";
import { openPool } from "../../src/store/pool.ts";

// As the daemon's own pool, so that a bench waits where the daemon would.
const CONNECTIONS_MAX = 10;

/** A fresh, migrated database on the bench's server. */
export async function freshDatabase(serverUrl: string, name: string): Promise<Pool> {
  const admin = openPool({ url: serverUrl, applicationName: "tallyd-bench", max: 1 });
  await admin.query(`drop database if exists ${name}`);
  await admin.query(`create database ${name}`);
  await admin.end();
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = openPool({ url: url.href, applicationName: "tallyd-bench", max: CONNECTIONS_MAX });
  await migrate(pool);
  return pool;
}

/** Seconds that some work took. */
export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1_000;
}

/** The value below which `share` of the sorted values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
