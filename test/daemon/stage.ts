/** A stage for tests of the whole daemon: a database of the test's own, stand-ins, settings. */
import type { Pool } from "pg";

import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import type { Log } from "../../src/core/log.ts";
import type { Settings } from "../../src/core/settings.ts";
import { openTallyd } from "../../src/daemon/tallyd.ts";
import type { Tallyd } from "../../src/daemon/tallyd.ts";
import { startSlackSandbox } from "../../src/sandbox/slack/server.ts";
import type { SlackSandbox } from "../../src/sandbox/slack/server.ts";
import { startStripeSandbox } from "../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../src/sandbox/stripe/server.ts";
import { createOwnTable } from "../../src/sources/local/own-table.ts";
import { createTestDb } from "../support/db.ts";
import { testSettings } from "../support/settings.ts";

export const WEBHOOK_SECRET = "whsec_0123456789abcdef";

export interface PayInput {
  readonly id?: string;
  readonly secondsAgo?: number;
  readonly amount?: number;
}

export interface TestStage {
  readonly pool: Pool;
  readonly stripe: StripeSandbox;
  readonly slack: SlackSandbox;
  readonly settings: Settings;
  /** The same settings as environment variables, for a process. */
  readonly env: Readonly<Record<string, string>>;
  readonly open: (log?: Log) => Promise<Tallyd>;
  /** A row of the team's table; times are seconds ago. */
  readonly row: (input: {
    readonly id: string;
    readonly state: string;
    readonly charge?: string;
    readonly secondsAgo?: number;
    readonly amount?: number;
  }) => Promise<void>;
  /** A paid payment intent at the stand-in, marked with an intent id. */
  readonly pay: (intentId: string, input?: PayInput) => string;
  readonly close: () => Promise<void>;
}

export async function openStage(
  overrides: Readonly<Record<string, string>> = {},
): Promise<TestStage> {
  const db = await createTestDb();
  await createOwnTable(db.pool, "public.payment_intents");
  const stripe = await startStripeSandbox();
  const slack = await startSlackSandbox();
  const env = {
    DATABASE_URL: db.url,
    STRIPE_API_KEY: "rk_test_0123456789abcdef",
    STRIPE_API_BASE: stripe.url,
    STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    STRIPE_READS_PER_SECOND: "0",
    SLACK_WEBHOOK_URL: `${slack.url}/services/T0/B0/secret`,
    PORT: "0",
    ADMIN_PORT: "0",
    HOST: "127.0.0.1",
    ...overrides,
  };
  const settings = testSettings({}, env);
  return {
    pool: db.pool,
    stripe,
    slack,
    settings,
    env,
    open: (log = silentLog) => openTallyd(settings, { log, clock: systemClock }),
    row: async ({ id, state, charge, secondsAgo = 0, amount = 2_000 }) => {
      await db.pool.query(
        `insert into public.payment_intents
           (intent_id, account_id, amount, currency, idempotency_key, state, charge_id,
            created_at, updated_at)
         values ($1, 'shop', $2, 'usd', $1 || '-key', $3, $4,
                 now() - $5 * interval '1 second', now() - $5 * interval '1 second')`,
        [id, amount, state, charge ?? null, secondsAgo],
      );
    },
    pay: (intentId, { secondsAgo = 0, id, amount = 2_000 } = {}) => {
      const created = Math.floor(stripe.control.now() / 1_000) - secondsAgo;
      const seeded = stripe.control.seed.paymentIntent({
        ...(id === undefined ? {} : { id }),
        metadata: { intent_id: intentId },
        created,
        amount: BigInt(amount),
        charge: { created },
      });
      return seeded.id;
    },
    close: async () => {
      await stripe.close();
      await slack.close();
      await db.close();
    },
  };
}
