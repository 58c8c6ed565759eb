import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { onePass } from "../../src/daemon/pass.ts";
import type { PassReport } from "../../src/daemon/pass.ts";
import { openTallyd } from "../../src/daemon/tallyd.ts";
import type { Tallyd } from "../../src/daemon/tallyd.ts";
import { startStripeSandbox } from "../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../src/sandbox/stripe/server.ts";
import { dataTables, emptyTables } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { testSettings } from "../support/settings.ts";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A row of the team's table; ages before now. */
export interface RowInput {
  readonly id: string;
  readonly state: string;
  readonly amount: number;
  readonly currency?: string;
  readonly key?: string;
  readonly charge?: string;
  readonly reference?: string;
  readonly ageMs: number;
  readonly updatedAgeMs?: number;
}

/** A row as it stands in the team's table. */
export interface TeamRow {
  readonly state: string;
  readonly charge_id: string | null;
  readonly response_json: Readonly<Record<string, unknown>> | null;
  readonly fingerprint: string | null;
}

/** A stored resolution, its outcome and words. */
export interface ResolutionLine {
  readonly decision: string;
  readonly outcome: string;
  readonly reason: string;
  readonly proof: Readonly<Record<string, unknown>>;
  readonly contract: Readonly<Record<string, unknown>>;
}

/** A team's table, a Stripe sandbox and an open tallyd between them. */
export interface ResolverWorld {
  readonly db: TestDb;
  readonly stripe: StripeSandbox;
  readonly tallyd: Tallyd;
  /** Unix seconds of a moment that long ago. */
  readonly at: (ageMs: number) => number;
  readonly row: (input: RowInput) => Promise<void>;
  readonly pass: () => Promise<PassReport>;
  readonly teamRow: (id: string) => Promise<TeamRow>;
  readonly resolutions: (id: string) => Promise<ResolutionLine[]>;
  /** Incidents that are not closed, as `code basis`, sorted. */
  readonly incidents: () => Promise<string[]>;
  readonly close: () => Promise<void>;
}

// The documented table, with the columns that richer writers add.
const TABLE = `
create table public.payment_intents (
    intent_id        TEXT PRIMARY KEY,
    account_id       TEXT NOT NULL,
    amount           INTEGER NOT NULL,
    currency         CHAR(3) NOT NULL,
    idempotency_key  TEXT NOT NULL UNIQUE,
    state            TEXT NOT NULL DEFAULT 'key_minted',
    charge_id        TEXT,
    response_json    JSONB,
    fingerprint      TEXT,
    reference        TEXT,
    created_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at       TIMESTAMPTZ NOT NULL DEFAULT now()
)`;

/** Opens an empty world on `db`; `env` are settings as the environment spells them. */
export async function openResolverWorld(
  db: TestDb,
  env: Readonly<Record<string, string>> = {},
): Promise<ResolverWorld> {
  await emptyTables(db.pool, await dataTables(db.pool));
  await db.pool.query("drop table if exists public.payment_intents");
  await db.pool.query(TABLE);
  const stripe = await startStripeSandbox();
  const settings = testSettings(
    {},
    {
      DATABASE_URL: db.url,
      STRIPE_API_BASE: stripe.url,
      STRIPE_READS_PER_SECOND: "0",
      STRIPE_REFERENCE_KEY: "ref",
      STRIPE_KEY_METADATA: "idem",
      ...env,
    },
  );
  const tallyd = await openTallyd(settings, { log: silentLog, clock: systemClock });
  const { signal } = new AbortController();
  return {
    db,
    stripe,
    tallyd,
    at: (ageMs) => Math.floor((Date.now() - ageMs) / SECOND),
    row: (input) => insertRow(db, input),
    pass: () => onePass(tallyd, { full: true, signal }),
    teamRow: async (id) => {
      const found = await db.pool.query<TeamRow>(
        `select state, charge_id, response_json, fingerprint
           from public.payment_intents
          where intent_id = $1`,
        [id],
      );
      const row = found.rows[0];
      if (row === undefined) throw new Error(`no row ${id}`);
      return row;
    },
    resolutions: async (id) => {
      const found = await db.pool.query<ResolutionLine>(
        `select decision, outcome, reason, proof, contract
           from tallyd.resolution
          where intent_id = $1
          order by resolution_id`,
        [id],
      );
      return found.rows;
    },
    incidents: async () => {
      const found = await db.pool.query<{ line: string }>(
        `select code || coalesce(' ' || basis, '') as line
           from tallyd.incident
          where status <> 'closed'
            -- Sources that a small world does not have are not what these tests are about.
            and operation_id is not null
          order by line`,
      );
      return found.rows.map((row) => row.line);
    },
    close: async () => {
      await tallyd.close();
      await stripe.close();
    },
  };
}

async function insertRow(db: TestDb, input: RowInput): Promise<void> {
  await db.pool.query(
    `insert into public.payment_intents
       (intent_id, account_id, amount, currency, idempotency_key, state, charge_id, reference,
        created_at, updated_at)
     values ($1, 'A', $2, $3, $4, $5, $6, $7,
             clock_timestamp() - $8 * interval '1 millisecond',
             clock_timestamp() - $9 * interval '1 millisecond')`,
    [
      input.id,
      input.amount,
      input.currency ?? "usd",
      input.key ?? `key-${input.id}`,
      input.state,
      input.charge ?? null,
      input.reference ?? null,
      input.ageMs,
      input.updatedAgeMs ?? input.ageMs,
    ],
  );
}
