/** A ledger on a real database, the official SDK, and the stand-in for Stripe. */
import type { Pool } from "pg";
import type Stripe from "stripe";

import type { Clock } from "../../src/core/clock.ts";
import { LedgerError, executePayment, mintIntent, readIntent } from "../../src/ledger/ledger.ts";
import type {
  ExecuteDeps,
  ExecuteOptions,
  LedgerIntent,
  MintInput,
  Minted,
  Payment,
} from "../../src/ledger/ledger.ts";
import type { Fault } from "../../src/sandbox/stripe/faults.ts";
import { startStripeSandbox } from "../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../src/sandbox/stripe/server.ts";
import { withTx } from "../../src/store/tx.ts";
import { makeTable } from "../e2e/team-table.ts";
import { createTestDb } from "../support/db.ts";
import { clientOf } from "./client.ts";

export type Table = "seed" | "own";

/** The world. */
export interface LedgerWorld {
  readonly pool: Pool;
  readonly url: string;
  readonly stripe: StripeSandbox;
  readonly deps: ExecuteDeps;
  readonly table: Table;
  /** Empties the table, starts a new stand-in at the same time as the world's clock. */
  readonly fresh: (table?: Table) => Promise<void>;
  readonly mint: (intentId: string, more?: Partial<MintInput>) => Promise<Minted>;
  readonly pay: (
    intentId: string,
    more?: Partial<ExecuteDeps>,
    options?: ExecuteOptions,
  ) => Promise<Payment>;
  readonly row: (intentId: string) => Promise<LedgerIntent>;
  /** Moves the clocks of ledger and stand-in. */
  readonly advance: (ms: number) => void;
  /** Lets requests that move money suffer a fault. */
  readonly fault: (fault: Fault) => void;
  /** The next look fails as well, so that nothing is found out right away. */
  readonly blind: () => void;
  /** Charges that succeeded, as `amount currency`. */
  readonly charges: () => Promise<readonly string[]>;
  /** Keys of the requests that were to move money, in order. */
  readonly keysSent: () => readonly (string | null)[];
  readonly close: () => Promise<void>;
}

// Not tried again by the official client, so that one fault is one look.
const NO_RIGHT = { error: { type: "invalid_request_error", message: "no right to read" } };
const ACCOUNT = "acct-9";

/** Opens the world; call `fresh` before each test. */
export async function openLedgerWorld(): Promise<LedgerWorld> {
  const db = await createTestDb({ template: "empty" });
  let offset = 0;
  const clock: Clock = { now: () => new Date(Date.now() + offset) };
  let table: Table = "own";
  let stripe = await startStripeSandbox({ now: () => clock.now().getTime() });
  let client = clientOf(stripe.url);
  const deps = (): ExecuteDeps => ({
    ...{ db: db.pool, stripe: client, clock },
    // The first printed table has no place for the parameters of the call.
    ...(table === "seed" ? { paramsOf: () => ({ payment_method: "pm_card_visa" }) } : {}),
  });
  return {
    pool: db.pool,
    url: db.url,
    get stripe() {
      return stripe;
    },
    get deps() {
      return deps();
    },
    get table() {
      return table;
    },
    fresh: async (kind = "own") => {
      await stripe.close();
      offset = 0;
      table = kind;
      await makeTable(db.pool, kind);
      stripe = await startStripeSandbox({ now: () => clock.now().getTime() });
      client = clientOf(stripe.url);
    },
    mint: (intentId, more = {}) =>
      withTx(db.pool, (tx) => mintIntent(tx, { ...purchase(table, intentId), clock, ...more })),
    pay: (intentId, more = {}, options = {}) =>
      executePayment({ ...deps(), ...more }, intentId, options),
    row: (intentId) => readIntent(deps(), intentId),
    advance: (ms) => {
      offset += ms;
    },
    fault: (fault) => {
      stripe.control.fault({ method: "POST", ...fault });
    },
    blind: () => {
      stripe.control.fault({ kind: "respond", method: "GET", status: 403, body: NO_RIGHT });
    },
    charges: () => chargesOf(client),
    keysSent: () =>
      stripe.control.requests
        .filter(({ method }) => method === "POST")
        .map(({ idempotencyKey }) => idempotencyKey),
    close: async () => {
      await stripe.close();
      await db.close();
    },
  };
}

function purchase(table: Table, intentId: string): MintInput {
  const plain = { intentId, accountId: ACCOUNT, amount: 500n, currency: "usd" };
  return table === "seed" ? plain : { ...plain, request: { payment_method: "pm_card_visa" } };
}

/** What a failed call of the ledger said; throws when it did not fail, or with something else. */
export async function refusalOf(call: Promise<unknown>): Promise<LedgerError> {
  const error: unknown = await call.then(
    (value) => new Error(`it did not fail: ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof LedgerError) return error;
  throw error;
}

async function chargesOf(client: Stripe): Promise<string[]> {
  const all = await client.charges.list({ limit: 100 }).autoPagingToArray({ limit: 10_000 });
  return all
    .filter(({ status }) => status === "succeeded")
    .map(({ amount, currency }) => `${String(amount)} ${currency}`);
}
