/** Everything a pass or the daemon works with, opened in order and closed in the reverse one. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

import type { Pool } from "pg";

import { createSlackSend } from "../alert/slack.ts";
import type { Senders } from "../alert/ways.ts";
import { createPagerDutySend } from "../alert/pagerduty.ts";
import { createWebhookSend } from "../alert/webhook.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { Settings } from "../core/settings.ts";
import { loadDetectors } from "../detect/load.ts";
import type { Detector } from "../detect/load.ts";
import { createLockSession } from "../scheduler/lock-session.ts";
import type { LockSession } from "../scheduler/lock-session.ts";
import { openChains } from "../sources/evm/open-chains.ts";
import type { ChainReader } from "../sources/evm/scan.ts";
import { openStripe } from "../sources/stripe/client.ts";
import type { StripeReader } from "../sources/stripe/client.ts";
import { migrate } from "../store/migrate.ts";
import { openPool } from "../store/pool.ts";
import { createReadCounter } from "../store/read-counts.ts";
import type { ReadCounter } from "../store/read-counts.ts";
import { openLocalTable } from "./local-table.ts";
import type { LocalTable } from "./local-table.ts";
import { endPool, openDatabase } from "./open-database.ts";

/** An open tallyd. */
export interface Tallyd {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Log;
  /** Unique per process: host, process id and a random part. */
  readonly replica: string;
  readonly startedAt: Date;
  /** tallyd's own database. */
  readonly pool: Pool;
  readonly embedded: boolean;
  readonly locks: LockSession;
  /** Told of the names of locks that went with a broken connection. */
  readonly onLocksLost: (listener: (names: readonly string[]) => void) => void;
  readonly local: LocalTable;
  /** Null: no key, so webhooks only. */
  readonly stripe: StripeReader | null;
  /** By CAIP-2 id; empty: no chain is configured. */
  readonly chains: ReadonlyMap<string, ChainReader>;
  readonly reads: ReadCounter;
  readonly detectors: readonly Detector[];
  /** The ways out that are configured. */
  readonly hooks: Senders;
  /** The own database's clock: ages never mix two clocks (case B45). */
  readonly now: () => Promise<Date>;
  /** Never throws. */
  readonly close: () => Promise<void>;
}

// One for reading, one for writing, two for direct looks.
const TEAM_CONNECTIONS_MAX = 4;

/**
 * Opens the databases, migrates tallyd's own, and makes the clients. Throws ConfigError for a key
 * of the wrong mode, SchemaNewerError for a newer schema, and what the driver says when the own
 * database is out of reach. The team's database and Stripe are not asked yet.
 */
export async function openTallyd(
  settings: Settings,
  deps: { readonly log: Log; readonly clock: Clock },
): Promise<Tallyd> {
  const { log, clock } = deps;
  const database = await openDatabase(settings, log);
  try {
    await migrate(database.pool);
    const reads = createReadCounter(database.pool, clock);
    const stripe = stripeOf(settings, { clock, reads });
    const team = openPool({
      url: settings.intents.databaseUrl ?? database.url,
      applicationName: "tallyd-intents",
      max: TEAM_CONNECTIONS_MAX,
    });
    let tellLost: (names: readonly string[]) => void = () => undefined;
    const locks = createLockSession(database.pool, (names) => {
      log.warn("the connection that held locks was lost: their work stops", { names });
      tellLost(names);
    });
    return {
      settings,
      clock,
      log,
      replica: `${hostname()}:${String(process.pid)}:${randomBytes(3).toString("hex")}`,
      startedAt: clock.now(),
      pool: database.pool,
      embedded: database.embedded,
      locks,
      onLocksLost: (listener) => {
        tellLost = listener;
      },
      local: openLocalTable({ own: database.pool, team, settings, clock }),
      stripe,
      chains: openChains(settings.chains, reads.count),
      reads,
      detectors: loadDetectors(),
      hooks: sendersOf(settings, clock),
      now: () => databaseNow(database.pool),
      close: async () => {
        await reads.flush().catch(() => undefined);
        await locks.close().catch(() => undefined);
        await endPool(team);
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

function sendersOf(settings: Settings, clock: Clock): Senders {
  const { slackWebhookUrl, slackCriticalWebhookUrl, webhook, pagerDuty } = settings;
  return {
    slack: slackWebhookUrl === null ? null : createSlackSend(slackWebhookUrl),
    slackCritical:
      slackCriticalWebhookUrl === null ? null : createSlackSend(slackCriticalWebhookUrl),
    webhook: webhook === null ? null : createWebhookSend(webhook, clock),
    pagerDuty: pagerDuty === null ? null : createPagerDutySend(pagerDuty),
  };
}

function stripeOf(
  settings: Settings,
  deps: { readonly clock: Clock; readonly reads: ReadCounter },
): StripeReader | null {
  const { apiKey } = settings.stripe;
  if (apiKey === null) return null;
  return openStripe({ ...settings.stripe, apiKey }, { clock: deps.clock, count: deps.reads.count });
}

async function databaseNow(pool: Pool): Promise<Date> {
  const found = await pool.query<{ at: Date }>("select clock_timestamp() as at");
  const at = found.rows[0]?.at;
  if (at === undefined) throw new Error("the database told no time");
  return at;
}
