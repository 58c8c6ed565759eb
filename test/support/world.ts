/**
 * A small world for tests of matching and detection: rows of the team's table and provider objects
 * are put into the mirror as their readers would, then placed and judged at one instant.
 */
import type { Pool } from "pg";

import { addMs } from "../../src/core/clock.ts";
import type { Finding } from "../../src/core/finding.ts";
import type { Settings } from "../../src/core/settings.ts";
import { detect } from "../../src/detect/detect.ts";
import { loadDetectors } from "../../src/detect/load.ts";
import type { Detector } from "../../src/detect/load.ts";
import { detectorParameters } from "../../src/detect/parameters.ts";
import type { DetectorContext } from "../../src/detect/parameters.ts";
import { suppressCovered } from "../../src/detect/suppress.ts";
import { placeChanged } from "../../src/match/place.ts";
import { withTx } from "../../src/store/tx.ts";
import { createTestDb, emptyTables } from "./db.ts";
import { testSettings } from "./settings.ts";

export const SCOPE = "platform/test";

export interface IntentInput {
  readonly id: string;
  readonly state?: string;
  readonly account?: string;
  readonly amount?: bigint | number;
  readonly currency?: string;
  readonly key?: string | null;
  readonly charge?: string | null;
  readonly reference?: string | null;
  readonly paymentId?: string | null;
  readonly fingerprint?: string | null;
  readonly fingerprintFit?: string | null;
  readonly customer?: string | null;
  readonly kind?: string;
  readonly payee?: string | null;
  readonly repeatConfirmed?: boolean;
  /** Age of created_at and updated_at before the world's now. */
  readonly ageMs?: number;
  readonly updatedAgeMs?: number;
  readonly scope?: string;
}

export interface ChargeInput {
  readonly id: string;
  readonly pi?: string | null;
  readonly status?: "succeeded" | "pending" | "failed";
  readonly captured?: boolean;
  readonly amount?: bigint | number;
  readonly amountCaptured?: bigint | number;
  readonly amountRefunded?: bigint | number;
  readonly currency?: string;
  readonly customer?: string | null;
  readonly mark?: string | null;
  readonly reference?: string | null;
  readonly keys?: readonly string[];
  readonly owned?: "yes" | "no" | "unknown";
  readonly invoice?: string | null;
  readonly payee?: string | null;
  readonly purpose?: string | null;
  readonly sourceTransfer?: string | null;
  readonly ageMs?: number;
  readonly scope?: string;
}

/** What the judge knows about the team's table. */
export interface ContextInput {
  readonly localAmountMax: bigint | null;
}

export interface World {
  readonly pool: Pool;
  readonly now: Date;
  readonly settings: Settings;
  /** Empties the world; `overrides` hold until the next reset. */
  readonly reset: (overrides?: Partial<Settings>) => Promise<void>;
  readonly intent: (input: IntentInput) => Promise<void>;
  readonly charge: (input: ChargeInput) => Promise<void>;
  readonly payment: (input: {
    readonly id: string;
    readonly status: string;
    readonly amount?: number;
    readonly mark?: string;
    readonly keys?: readonly string[];
    readonly ageMs?: number;
    readonly asynchronous?: boolean;
  }) => Promise<void>;
  readonly refund: (input: {
    readonly id: string;
    readonly charge: string;
    readonly amount: number;
    readonly status?: string;
    readonly ageMs?: number;
  }) => Promise<void>;
  readonly dispute: (input: {
    readonly id: string;
    readonly charge: string;
    readonly amount: number;
    readonly status: string;
    readonly reason?: string;
    readonly refundable?: boolean;
  }) => Promise<void>;
  /** Places what changed and runs every operation detector over everything. */
  readonly judge: (atMs?: number, context?: ContextInput) => Promise<Finding[]>;
  /** Runs the detectors that speak about the sources themselves. */
  readonly judgeSources: (context?: ContextInput) => Promise<Finding[]>;
  /** The findings as short lines `code subject`, sorted. */
  readonly codes: (atMs?: number) => Promise<string[]>;
  readonly close: () => Promise<void>;
}

const HOUR_MS = 3_600_000;
const TABLES = [
  "tallyd.intent",
  "tallyd.charge",
  "tallyd.stripe_payment_intent",
  "tallyd.refund",
  "tallyd.dispute",
  "tallyd.object_key",
  "tallyd.intent_match",
  "tallyd.charge_match",
  "tallyd.changed",
  "tallyd.due",
  "tallyd.ladder",
  "tallyd.resolution",
  "tallyd.source",
  "tallyd.inbox",
  "tallyd.tally",
  "tallyd.hook",
  "tallyd.intent_fault",
  "tallyd.refund_match",
  "tallyd.evm_chain",
  "tallyd.evm_transfer",
  "tallyd.evm_authorization",
  "tallyd.evm_transaction",
  "tallyd.evm_endpoint",
  "tallyd.evm_balance",
];

/** Opens an empty world on a database of its own. `now` is fixed. */
export async function openWorld(): Promise<World> {
  const db = await createTestDb({ template: "migrated" });
  const now = new Date("2026-06-01T12:00:00Z");
  let settings = testSettings();
  const { pool } = db;
  const at = (ageMs: number | undefined): Date => addMs(now, -(ageMs ?? HOUR_MS));
  const run = (about: Detector["about"], asOf: Date, local?: ContextInput): Promise<Finding[]> =>
    judgeAll(pool, { about, asOf, settings, localAmountMax: local?.localAmountMax ?? null });
  const judge = (atMs = 0, local?: ContextInput): Promise<Finding[]> =>
    run("operations", addMs(now, atMs), local);
  return {
    pool,
    now,
    settings,
    reset: async (overrides = {}) => {
      settings = testSettings(overrides);
      await emptyTables(pool, TABLES);
    },
    intent: (input) => insertIntent(pool, input, at),
    charge: (input) => insertCharge(pool, input, at),
    payment: (input) => insertPayment(pool, input, at),
    refund: (input) => insertRefund(pool, input, at),
    dispute: (input) => insertDispute(pool, input, at),
    judge,
    judgeSources: (local) => run("sources", now, local),
    codes: async (atMs) => (await judge(atMs)).map((f) => `${f.code} ${f.severity}`).sort(),
    close: () => db.close(),
  };
}

type At = (ageMs: number | undefined) => Date;

async function judgeAll(
  pool: Pool,
  input: DetectorContext & { readonly about: Detector["about"]; readonly asOf: Date },
): Promise<Finding[]> {
  await withTx(pool, async (tx) => placeChanged(tx, input.settings.rules, input.asOf));
  const rows = await pool.query<{ operation_id: string }>(
    `select operation_id from tallyd.intent_match
      union
     select operation_id from tallyd.charge_match`,
  );
  const operations = rows.rows.map((row) => row.operation_id);
  const detectors = loadDetectors().filter((detector) => detector.about === input.about);
  const parameters = detectorParameters(input, { operations, asOf: input.asOf });
  const { findings } = await detect(pool, detectors, parameters);
  return suppressCovered(findings);
}

async function changed(pool: Pool, kind: string, scope: string, id: string): Promise<void> {
  await pool.query(
    `insert into tallyd.changed (kind, scope, id) values ($1, $2, $3) on conflict do nothing`,
    [kind, scope, id],
  );
}

async function insertIntent(pool: Pool, input: IntentInput, at: At): Promise<void> {
  const created = at(input.ageMs);
  const updated = at(input.updatedAgeMs ?? input.ageMs);
  const recordedAs = {
    amount: String(input.amount ?? 1000),
    currency: input.currency ?? "usd",
    account_id: input.account ?? "A",
    payee: input.payee ?? null,
  };
  const state = input.state ?? "recorded";
  await pool.query(
    `insert into tallyd.intent (intent_id, account_id, rail, scope, kind, amount, currency,
       idempotency_key, state, raw_state, charge_id, fingerprint, fingerprint_fit, reference,
       payment_id, customer, payee, repeat_confirmed, created_at, updated_at, row_hash, first_seen_at,
       seen_at, recorded_as)
     values ($1, $2, 'stripe', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
       $17, $18, $19, md5(random()::text), $18, $19, $20)
     on conflict (intent_id) do update
       set state = excluded.state, raw_state = excluded.raw_state, charge_id = excluded.charge_id,
           amount = excluded.amount, currency = excluded.currency, updated_at = excluded.updated_at,
           recorded_as = coalesce(tallyd.intent.recorded_as, excluded.recorded_as)`,
    [
      input.id,
      recordedAs.account_id,
      input.scope ?? SCOPE,
      input.kind ?? "charge",
      recordedAs.amount,
      recordedAs.currency,
      input.key === undefined ? `key-${input.id}` : input.key,
      state,
      state,
      input.charge ?? null,
      input.fingerprint ?? null,
      input.fingerprintFit ?? null,
      input.reference ?? null,
      input.paymentId ?? null,
      input.customer ?? null,
      recordedAs.payee,
      input.repeatConfirmed ?? false,
      created,
      updated,
      state === "recorded" ? JSON.stringify(recordedAs) : null,
    ],
  );
  await changed(pool, "intent", "", input.id);
}

async function insertCharge(pool: Pool, input: ChargeInput, at: At): Promise<void> {
  const scope = input.scope ?? SCOPE;
  const status = input.status ?? "succeeded";
  const amount = String(input.amount ?? 1000);
  const captured = input.captured ?? status === "succeeded";
  const created = at(input.ageMs);
  await pool.query(
    `insert into tallyd.charge (scope, charge_id, rail, payment_intent, amount, amount_captured,
       amount_refunded, currency, status, captured, payer, payee, purpose, invoice, source_transfer,
       intent_mark, reference, owned, created_at, version_at, version_rank)
     values ($1, $2, 'stripe', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
       $18, $18, 1)
     on conflict (scope, charge_id) do update
       set amount_refunded = excluded.amount_refunded, status = excluded.status,
           version_at = excluded.version_at`,
    [
      scope,
      input.id,
      input.pi === undefined ? input.id.replace(/^ch_/, "pi_") : input.pi,
      amount,
      String(input.amountCaptured ?? (captured ? amount : 0)),
      String(input.amountRefunded ?? 0),
      input.currency ?? "usd",
      status,
      captured,
      input.customer ?? null,
      input.payee ?? null,
      input.purpose ?? null,
      input.invoice ?? null,
      input.sourceTransfer ?? null,
      input.mark ?? null,
      input.reference ?? null,
      input.owned ?? "yes",
      created,
    ],
  );
  for (const key of input.keys ?? []) await insertKey(pool, scope, input.id, key, created);
  await changed(pool, "charge", scope, input.id);
}

async function insertKey(pool: Pool, scope: string, id: string, key: string, on: Date) {
  await pool.query(
    `insert into tallyd.object_key (scope, object_id, idempotency_key, event_id, at)
     values ($1, $2, $3, $4, $5)
     on conflict do nothing`,
    [scope, id, key, `evt_${id}`, on],
  );
}

async function insertPayment(
  pool: Pool,
  input: Parameters<World["payment"]>[0],
  at: At,
): Promise<void> {
  const created = at(input.ageMs);
  await pool.query(
    `insert into tallyd.stripe_payment_intent (scope, id, amount, currency, status, intent_mark,
       asynchronous, created_at, version_at, version_rank)
     values ($1, $2, $3, 'usd', $4, $5, $6, $7, $7, 1)
     on conflict (scope, id) do update
       set status = excluded.status`,
    [
      SCOPE,
      input.id,
      String(input.amount ?? 1000),
      input.status,
      input.mark ?? null,
      input.asynchronous ?? false,
      created,
    ],
  );
  for (const key of input.keys ?? []) await insertKey(pool, SCOPE, input.id, key, created);
  await changed(pool, "payment_intent", SCOPE, input.id);
}

async function insertRefund(
  pool: Pool,
  input: Parameters<World["refund"]>[0],
  at: At,
): Promise<void> {
  await pool.query(
    `insert into tallyd.refund (scope, refund_id, charge_id, amount, currency, status, created_at,
       version_at, version_rank)
     values ($1, $2, $3, $4, 'usd', $5, $6, $6, 1)
     on conflict (scope, refund_id) do update
       set status = excluded.status, version_at = excluded.version_at`,
    [
      SCOPE,
      input.id,
      input.charge,
      String(input.amount),
      input.status ?? "succeeded",
      at(input.ageMs ?? 0),
    ],
  );
  await changed(pool, "charge", SCOPE, input.charge);
}

async function insertDispute(
  pool: Pool,
  input: Parameters<World["dispute"]>[0],
  at: At,
): Promise<void> {
  await pool.query(
    `insert into tallyd.dispute (scope, dispute_id, charge_id, amount, currency, status, reason,
       refundable, created_at, version_at, version_rank)
     values ($1, $2, $3, $4, 'usd', $5, $6, $7, $8, $8, 1)
     on conflict (scope, dispute_id) do update
       set status = excluded.status`,
    [
      SCOPE,
      input.id,
      input.charge,
      String(input.amount),
      input.status,
      input.reason ?? null,
      input.refundable ?? null,
      at(0),
    ],
  );
  await changed(pool, "charge", SCOPE, input.charge);
}
