/** Reads everything that the database knows about one purchase; no source is asked. */
import type { Incident } from "../core/incident.ts";
import type { IntentState } from "../core/states.ts";
import { readIncident } from "../store/incident-list.ts";
import { readNamedSql, runNamed } from "../store/named-sql.ts";
import type { Db } from "../store/pool.ts";

const sql = {
  operations: readNamedSql("explain/find_operations.sql"),
  intents: readNamedSql("explain/intents.sql"),
  charges: readNamedSql("explain/charges.sql"),
  payments: readNamedSql("explain/payments.sql"),
  moneyBack: readNamedSql("explain/money_back.sql"),
  events: readNamedSql("explain/events.sql"),
  chainEvents: readNamedSql("explain/chain_events.sql"),
  incidents: readNamedSql("explain/incidents.sql"),
};

// An id that stands in more purchases than this is no id of a purchase: a person narrows it.
const OPERATIONS_MAX = 20;
// Rows of one kind. A burst of charges may be long; beyond this a person needs SQL, not a page.
const ROWS_MAX = 500;

/** A provider object by its full name. */
export interface ObjectName {
  readonly scope: string;
  readonly id: string;
}

/** The operations that an id names, in order; empty: it names none. */
export async function findOperations(
  db: Db,
  id: string,
  scopes: readonly string[],
): Promise<string[]> {
  const rows = await runNamed<{ operation_id: string }>(db, sql.operations, {
    id,
    scopes,
    limit: OPERATIONS_MAX,
  });
  return rows.map((row) => row.operation_id);
}

/** The rows of the operations. */
export function readIntents(db: Db, operations: readonly string[]): Promise<IntentRecord[]> {
  return runNamed<IntentRecord>(db, sql.intents, { operations, limit: ROWS_MAX });
}

/** The charges of the operations. */
export function readCharges(db: Db, operations: readonly string[]): Promise<ChargeRow[]> {
  return runNamed<ChargeRow>(db, sql.charges, { operations, limit: ROWS_MAX });
}

/** The payment intents of the operations. */
export function readPayments(db: Db, operations: readonly string[]): Promise<PaymentRow[]> {
  return runNamed<PaymentRow>(db, sql.payments, { operations, limit: ROWS_MAX });
}

/** Refunds and disputes of the objects. */
export function readMoneyBack(db: Db, objects: readonly ObjectName[]): Promise<MoneyBackRow[]> {
  return runNamed<MoneyBackRow>(db, sql.moneyBack, { ...names(objects), limit: ROWS_MAX });
}

/** Events about the objects. */
export function readEvents(db: Db, objects: readonly ObjectName[]): Promise<EventRow[]> {
  return runNamed<EventRow>(db, sql.events, { ...names(objects), limit: ROWS_MAX });
}

/** What the logs and looks of a chain say about rows and charges. */
export function readChainEvents(
  db: Db,
  about: { readonly charges: readonly ObjectName[]; readonly intents: readonly string[] },
): Promise<EventRow[]> {
  const { charges, intents } = about;
  return runNamed<EventRow>(db, sql.chainEvents, { ...names(charges), intents, limit: ROWS_MAX });
}

/** Incidents that name any of them. */
export async function readIncidents(
  db: Db,
  about: {
    readonly operations: readonly string[];
    readonly intents: readonly string[];
    readonly charges: readonly string[];
  },
): Promise<Incident[]> {
  const rows = await runNamed<{ id: string }>(db, sql.incidents, { ...about, limit: ROWS_MAX });
  const incidents: Incident[] = [];
  for (const { id } of rows) {
    const incident = await readIncident(db, id);
    if (incident !== null) incidents.push(incident);
  }
  return incidents;
}

function names(objects: readonly ObjectName[]): {
  readonly scopes: readonly string[];
  readonly ids: readonly string[];
} {
  return { scopes: objects.map((one) => one.scope), ids: objects.map((one) => one.id) };
}

/** A row of sql/explain/intents.sql; `numeric` is text. */
export interface IntentRecord {
  readonly intent_id: string;
  readonly account_id: string;
  readonly rail: string;
  readonly scope: string;
  readonly kind: string;
  readonly amount: string;
  readonly currency: string;
  readonly idempotency_key: string | null;
  readonly state: IntentState;
  readonly raw_state: string;
  readonly charge_id: string | null;
  readonly response_kind: string;
  readonly fingerprint: string | null;
  readonly reference: string | null;
  readonly payment_id: string | null;
  readonly customer: string | null;
  readonly payer: string | null;
  readonly payee: string | null;
  readonly asset: string | null;
  readonly nonce: string | null;
  readonly valid_before: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly vanished_at: Date | null;
  readonly operation_id: string;
  readonly rung: number | null;
  readonly next_at: Date | null;
  readonly ended_at: Date | null;
  readonly missing: unknown;
}

/** A row of sql/explain/charges.sql. */
export interface ChargeRow {
  readonly charge_id: string;
  readonly scope: string;
  readonly rail: string;
  readonly payment_intent: string | null;
  readonly status: string;
  readonly succeeded: boolean;
  readonly amount: string;
  readonly amount_captured: string;
  readonly amount_returned: string;
  readonly net: string;
  readonly currency: string;
  readonly captured: boolean;
  readonly disputed: boolean;
  readonly mirrored: boolean;
  readonly payer: string | null;
  readonly payee: string | null;
  readonly asset: string | null;
  readonly nonce: string | null;
  readonly reference: string | null;
  readonly owned: string;
  readonly operation_id: string;
  readonly intent_id: string | null;
  readonly basis: string | null;
  readonly conflict: unknown;
  readonly created_at: Date;
}

/** A row of sql/explain/payments.sql. */
export interface PaymentRow {
  readonly id: string;
  readonly scope: string;
  readonly status: string;
  readonly amount: string;
  readonly currency: string;
  readonly latest_charge: string | null;
  readonly failure_code: string | null;
  readonly cancellation_reason: string | null;
  readonly created_at: Date;
  readonly missing_since: Date | null;
}

/** A row of sql/explain/money_back.sql. */
export interface MoneyBackRow {
  readonly kind: "refund" | "dispute";
  readonly id: string;
  readonly scope: string;
  readonly charge_id: string | null;
  readonly payment_intent: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
  readonly reason: string | null;
  readonly created_at: Date;
}

/** A row of sql/explain/events.sql. */
export interface EventRow {
  readonly event_id: string;
  readonly type: string;
  readonly scope: string;
  readonly object_id: string | null;
  readonly idempotency_key: string | null;
  readonly via: string;
  readonly status: string;
  readonly deliveries: number;
  readonly created_at: Date;
  readonly received_at: Date;
}
