/** The team's table of all worlds of a batch. */
import type { TestDb } from "../support/db.ts";
import { emptyTables } from "../support/db.ts";
import type { SimRow } from "./world.ts";

/** A row as it stands in the team's table. */
export interface TeamRow {
  readonly state: string;
  readonly chargeId: string | null;
  readonly amount: string;
}

// The superset of the seed's table, without a unique key: writers that share keys are the point.
const TABLE = `
create table if not exists public.payment_intents (
  intent_id        text primary key,
  account_id       text not null,
  operation        text not null,
  amount           numeric(78,0) not null,
  currency         text not null,
  idempotency_key  text not null,
  state            text not null,
  charge_id        text,
  response_json    jsonb,
  fingerprint      text,
  reference        text,
  customer         text,
  payment_id       text,
  repeat_confirmed boolean not null default false,
  created_at       timestamptz not null,
  updated_at       timestamptz not null
)`;

const TABLES = [
  "public.payment_intents",
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
  "tallyd.refetch",
  "tallyd.look",
  "tallyd.intent_fault",
];

/** Makes the table where it is not there yet, and empties everything. */
export async function emptyDatabase(db: TestDb): Promise<void> {
  await db.pool.query(TABLE);
  await emptyTables(db.pool, TABLES);
}

/** Writes the rows as they were first: what somebody changes later is not changed yet. */
export async function insertRows(db: TestDb, rows: readonly SimRow[], now: Date): Promise<void> {
  await db.pool.query(
    `insert into public.payment_intents
       (intent_id, account_id, operation, amount, currency, idempotency_key, state, charge_id,
        fingerprint, reference, customer, payment_id, repeat_confirmed, created_at, updated_at)
     select id, account, kind, coalesce("amountAtFirst", amount), currency, key, state, "chargeId",
            fingerprint, reference, customer, "paymentId", "repeatConfirmed",
            $2::timestamptz - "createdAge" * interval '1 second',
            $2::timestamptz - "updatedAge" * interval '1 second'
       from jsonb_to_recordset($1::jsonb)
         as given (id text, account text, kind text, amount numeric, "amountAtFirst" numeric,
                   currency text, key text, state text, "chargeId" text, fingerprint text,
                   reference text, customer text, "paymentId" text, "repeatConfirmed" boolean,
                   "createdAge" integer, "updatedAge" integer)`,
    [JSON.stringify(rows), now],
  );
}

/** Changes amounts of recorded rows behind everybody's back; false: there is none to change. */
export async function tamperRows(db: TestDb, rows: readonly SimRow[]): Promise<boolean> {
  const changed = rows.filter((row) => row.amountAtFirst !== null);
  if (changed.length === 0) return false;
  await db.pool.query(
    `update public.payment_intents as row
        set amount = given.amount
       from jsonb_to_recordset($1::jsonb) as given (id text, amount numeric)
      where row.intent_id = given.id`,
    [JSON.stringify(changed.map(({ id, amount }) => ({ id, amount })))],
  );
  return true;
}

/** The whole table. */
export async function readTeamRows(db: TestDb): Promise<Map<string, TeamRow>> {
  const found = await db.pool.query<{ id: string } & TeamRow>(
    `select intent_id as id, state, charge_id as "chargeId", amount::text as amount
       from public.payment_intents`,
  );
  return new Map(found.rows.map(({ id, ...row }) => [id, row]));
}
