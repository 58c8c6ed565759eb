import type { Pool } from "pg";
import { startStripeSandbox } from "../../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../../src/sandbox/stripe/server.ts";
import type { Log } from "../../../src/core/log.ts";
import { silentLog } from "../../../src/core/log.ts";
import type { StripeDeps, StripeReader } from "../../../src/sources/stripe/client.ts";
import { openStripe } from "../../../src/sources/stripe/client.ts";
import type { Timer } from "../../../src/sources/stripe/pace.ts";
import { createTestDb } from "../../support/db.ts";

/** A time that only moves when told. */
export interface TestClock {
  ms: number;
  readonly now: () => Date;
}

/** Midsummer noon: behind the machine's clock, so that nothing here depends on today. */
export const T = Date.UTC(2026, 5, 21, 12, 0, 0);
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const KEY = "rk_test_stand_in_key";
export const PLATFORM_SCOPE = "platform/test";
export const ACCOUNT = "acct_1Connected";
export const ACCOUNT_SCOPE = `${ACCOUNT}/test`;

export function createTestClock(ms = T): TestClock {
  const clock: TestClock = { ms, now: () => new Date(clock.ms) };
  return clock;
}

/** A timer without waiting: a sleep moves its own time and is remembered. */
export interface TestTimer extends Timer {
  readonly sleeps: number[];
}

export function createTestTimer(): TestTimer {
  let nowMs = 0;
  const sleeps: number[] = [];
  return {
    sleeps,
    nowMs: () => nowMs,
    sleep: (ms) => {
      sleeps.push(ms);
      nowMs += ms;
      return Promise.resolve();
    },
  };
}

const STRIPE = {
  metadataKey: "intent_id",
  referenceKey: "order",
  keyMetadata: ["idempotency_key"],
  owned: null,
  accounts: [] as readonly string[],
  livemode: false,
};

export interface StripeWorld {
  readonly sandbox: StripeSandbox;
  readonly pool: Pool;
  readonly clock: TestClock;
  readonly timer: TestTimer;
  readonly client: StripeReader;
  /** What walks, sweeps and look-ups need. */
  readonly deps: {
    readonly client: StripeReader;
    readonly pool: Pool;
    readonly clock: TestClock;
    readonly log: Log;
    readonly settings: typeof WORLD_SETTINGS & { readonly stripe: typeof STRIPE };
  };
  readonly close: () => Promise<void>;
}

const WORLD_SETTINGS = {
  firstLookbackMs: 48 * HOUR,
  rules: { safetyLagMs: MINUTE, clockSlackMs: MINUTE },
};

export function openClient(
  apiBase: string,
  deps: StripeDeps,
  settings: { readonly apiKey?: string; readonly readsPerSecond?: number } = {},
): StripeReader {
  return openStripe(
    {
      apiKey: settings.apiKey ?? KEY,
      apiBase,
      livemode: false,
      readsPerSecond: settings.readsPerSecond ?? 0,
    },
    deps,
  );
}

/** A sandbox, a database and a client that share one clock. */
export async function openStripeWorld(
  options: { readonly accounts?: readonly string[]; readonly ms?: number } = {},
): Promise<StripeWorld> {
  const clock = createTestClock(options.ms);
  const timer = createTestTimer();
  const sandbox = await startStripeSandbox({ now: () => clock.ms });
  const db = await createTestDb();
  const client = openClient(sandbox.url, { clock, timer, random: () => 0 });
  const settings = {
    ...WORLD_SETTINGS,
    stripe: { ...STRIPE, accounts: options.accounts ?? [] },
  };
  return {
    sandbox,
    pool: db.pool,
    clock,
    timer,
    client,
    deps: { client, pool: db.pool, clock, log: silentLog, settings },
    close: async () => {
      await sandbox.close();
      await db.close();
    },
  };
}

/** Unix seconds of a moment relative to T. */
export function secondsAt(offsetMs: number): number {
  return Math.floor((T + offsetMs) / SECOND);
}

/** Ids of a mirror table, in order. */
export async function idsOf(pool: Pool, table: "charge" | "payment_intent"): Promise<string[]> {
  const sql =
    table === "charge"
      ? "select charge_id as id from tallyd.charge where not derived order by charge_id"
      : "select id from tallyd.stripe_payment_intent order by id";
  const found = await pool.query<{ id: string }>(sql);
  return found.rows.map((row) => row.id);
}
