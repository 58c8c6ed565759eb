import type { PoolClient } from "pg";

import type { RuleSettings } from "../core/settings.ts";
import { planByKeys, readNamedSql, runNamed } from "../store/named-sql.ts";
import { interval } from "../core/interval.ts";
import { placeRefunds } from "./place-refunds.ts";

/** What one placing did. */
export interface Placed {
  /** Changed objects that were taken from the queue. */
  readonly changed: number;
  /** Operations that were left or entered, and will be judged. */
  readonly operations: readonly string[];
  /** Charges of this batch that no row owns yet: their rows may be on their way. */
  readonly unowned: number;
  /** True when the queue may hold more: call again. */
  readonly more: boolean;
}

// One batch touches at most a few thousand rows and stays far below a second, so that a fresh
// webhook never waits long behind a backfill.
const CHANGED_MAX = 1_000;

const sql = {
  relatedCharges: readNamedSql("match/related_charges.sql"),
  placeIntents: readNamedSql("match/place_intents.sql"),
  placeCharges: readNamedSql("match/place_charges.sql"),
  fillByReference: readNamedSql("match/fill_by_reference.sql"),
  liken: readNamedSql("match/liken.sql"),
  owners: readNamedSql("match/owners.sql"),
  namesakes: readNamedSql("match/namesakes.sql"),
  schedule: readNamedSql("match/schedule.sql"),
};

interface ChangedRow {
  readonly kind: "intent" | "charge" | "payment_intent";
  readonly scope: string;
  readonly id: string;
}

/**
 * Places a batch of changed intents and charges into operations and schedules those operations for
 * judging. Runs inside the caller's transaction, which must hold the match lock: two placers at
 * once could each see half of a pair. `now` is the time that deadlines are counted from.
 */
export async function placeChanged(
  tx: PoolClient,
  rules: RuleSettings,
  now: Date,
): Promise<Placed> {
  const changed = [...(await takeChanged(tx)), ...(await waitedFor(tx, now))];
  if (changed.length === 0) return { changed: 0, operations: [], unowned: 0, more: false };
  await planByKeys(tx);
  const intents = await withSharedPaymentIds(tx, changed);
  const touched = new Set<string>();
  const note = (rows: readonly { readonly operation_id: string | null }[]): void => {
    for (const row of rows) if (row.operation_id !== null) touched.add(row.operation_id);
  };
  const charges = await relatedCharges(tx, changed, intents);
  const placeCharges = async (list: readonly ChargeKey[]): Promise<void> => {
    const { orphanGraceMs } = rules;
    const wait = { now, orphan_grace: interval(orphanGraceMs) };
    note(await runNamed<OperationRow>(tx, sql.placeCharges, { ...keysOf(list), ...wait }));
  };
  // Charges find their rows, rows take their names from themselves or from their charges, and then
  // the charges of those names go to the operations of the rows.
  const owners = new Set(intents);
  const noteOwners = async (): Promise<void> => {
    const rows = await runNamed<{ intent_id: string }>(tx, sql.owners, keysOf(charges));
    for (const row of rows) owners.add(row.intent_id);
  };
  await noteOwners();
  await placeCharges(charges);
  await noteOwners();
  const rows = await runNamed<MovedRow>(tx, sql.placeIntents, { intents: [...owners] });
  note(rows);
  const namesakes = await runNamed<ChargeKey>(tx, sql.namesakes, { intents: [...owners] });
  const placed = [...charges, ...namesakes];
  // Where no row moved, the first placing of these charges still holds.
  await placeCharges(rows.some((row) => row.moved) ? placed : without(namesakes, charges));
  note(await placeRefunds(tx, keysOf(placed)));
  note(await operationsOfPayments(tx, changed));
  const operations = [...touched];
  await runNamed(tx, sql.fillByReference, { operations });
  await runNamed(tx, sql.liken, { operations });
  await runNamed(tx, sql.schedule, { operations, now, ...deadlines(rules) });
  const unowned = await countUnowned(tx, charges);
  return { changed: changed.length, operations, unowned, more: changed.length >= CHANGED_MAX };
}

async function countUnowned(tx: PoolClient, charges: readonly ChargeKey[]): Promise<number> {
  const result = await tx.query<{ n: number }>(
    `select count(*)::int as n
       from unnest($1::text[], $2::text[]) as c (scope, charge_id)
       join tallyd.charge_match m using (scope, charge_id)
      where m.intent_id is null`,
    [charges.map((charge) => charge.scope), charges.map((charge) => charge.charge_id)],
  );
  return result.rows[0]?.n ?? 0;
}

interface ChargeKey {
  readonly scope: string;
  readonly charge_id: string;
}

/** The parameters of a statement over charges, each charge once. */
function keysOf(list: readonly ChargeKey[]): { scopes: string[]; charge_ids: string[] } {
  const distinct = [...new Map(list.map((key) => [`${key.scope} ${key.charge_id}`, key])).values()];
  return {
    scopes: distinct.map((key) => key.scope),
    charge_ids: distinct.map((key) => key.charge_id),
  };
}

interface OperationRow {
  readonly operation_id: string | null;
}

interface MovedRow extends OperationRow {
  readonly moved: boolean;
}

function without(list: readonly ChargeKey[], others: readonly ChargeKey[]): ChargeKey[] {
  const known = new Set(others.map((key) => `${key.scope} ${key.charge_id}`));
  return list.filter((key) => !known.has(`${key.scope} ${key.charge_id}`));
}

function deadlines(rules: RuleSettings): Record<string, string> {
  return {
    orphan_grace: interval(rules.orphanGraceMs),
    in_flight_limit: interval(rules.inFlightLimitMs),
    retry_horizon: interval(rules.retryHorizonMs),
    async_limit: interval(rules.asyncLimitMs),
  };
}

async function takeChanged(tx: PoolClient): Promise<ChangedRow[]> {
  const result = await tx.query<ChangedRow>(
    `delete from tallyd.changed
      where (kind, scope, id) in (
              select kind, scope, id
                from tallyd.changed
               order by at
               limit $1
                 for update skip locked
            )
     returning kind, scope, id`,
    [CHANGED_MAX],
  );
  return result.rows;
}

/** The charges that were kept apart for a row of their own and need not wait any longer. */
async function waitedFor(tx: PoolClient, now: Date): Promise<ChangedRow[]> {
  const result = await tx.query<ChangedRow>(
    `select 'charge' as kind, scope, charge_id as id
       from tallyd.charge_match
      where wait_until <= $1
      order by wait_until
      limit $2`,
    [now, CHANGED_MAX],
  );
  return result.rows;
}

/** The changed intents and those that share a payment identifier with one of them. */
async function withSharedPaymentIds(
  tx: PoolClient,
  changed: readonly ChangedRow[],
): Promise<string[]> {
  const ids = changed.filter((row) => row.kind === "intent").map((row) => row.id);
  if (ids.length === 0) return [];
  const result = await tx.query<{ intent_id: string }>(
    `select intent_id
       from tallyd.intent
      where intent_id = any ($1::text[])
      union
     select o.intent_id
       from tallyd.intent i
       join tallyd.intent o on o.payment_id = i.payment_id
      where i.intent_id = any ($1::text[])`,
    [ids],
  );
  return result.rows.map((row) => row.intent_id);
}

async function relatedCharges(
  tx: PoolClient,
  changed: readonly ChangedRow[],
  intents: readonly string[],
): Promise<ChargeKey[]> {
  const charges = changed.filter((row) => row.kind === "charge");
  const payments = changed.filter((row) => row.kind === "payment_intent");
  return runNamed(tx, sql.relatedCharges, {
    intents,
    charge_scopes: charges.map((row) => row.scope),
    charge_ids: charges.map((row) => row.id),
    payment_scopes: payments.map((row) => row.scope),
    payment_ids: payments.map((row) => row.id),
  });
}

/** A payment intent without a charge still speaks about the rows that its marks point to. */
async function operationsOfPayments(
  tx: PoolClient,
  changed: readonly ChangedRow[],
): Promise<OperationRow[]> {
  const payments = changed.filter((row) => row.kind === "payment_intent");
  if (payments.length === 0) return [];
  const result = await tx.query<OperationRow>(
    `select m.operation_id
       from unnest($1::text[], $2::text[]) as c (scope, id)
       join tallyd.intent_payment l on l.scope = c.scope and l.payment_intent = c.id
       join tallyd.intent_match m on m.intent_id = l.intent_id`,
    [payments.map((row) => row.scope), payments.map((row) => row.id)],
  );
  return result.rows;
}
