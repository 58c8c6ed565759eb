/**
 * The provider half of the mirror. Facts of any number, in any order and repetition, end in the
 * same rows (invariant 5); only what really changed is marked for match.
 */
import type {
  ChargeFact,
  DisputeFact,
  Fact,
  KeyFact,
  MissingFact,
  PaymentIntentFact,
  RefundFact,
} from "../core/facts.ts";
import { ChangedObjects, markChanged } from "./mirror-changed.ts";
import { mergeStatements, sameColumns, sameStatement } from "./mirror-merge.ts";
import type { Rules, Statement } from "./mirror-merge.ts";
import { insertMissing, keyOf, lockRows, updateRows } from "./mirror-rows.ts";
import type { MirrorWrite } from "./mirror-rows.ts";
import { CHARGES, DISPUTES, PAYMENT_INTENTS, REFUNDS, statementOf } from "./mirror-tables.ts";
import type { MirrorTable } from "./mirror-tables.ts";
import type { Db } from "./pool.ts";

/** Rows that were made or really changed, by table. */
export interface AppliedFacts {
  readonly changed: {
    readonly paymentIntents: number;
    readonly charges: number;
    readonly refunds: number;
    readonly disputes: number;
    readonly keys: number;
    readonly missing: number;
  };
}

type ObjectFact = PaymentIntentFact | ChargeFact | RefundFact | DisputeFact;

// One JSON parameter of so many rows is some megabytes: large enough that the round trip is
// nothing, small enough that neither side holds much at once.
const ROWS_A_STATEMENT_MAX = 2000;

/**
 * Merges facts into the mirror inside the caller's transaction. `now` is tallyd's clock and only
 * dates the writing. A denial (`missing`) of an object that the mirror does not hold leaves no
 * trace: there is nothing it could be about.
 */
export async function applyFacts(tx: Db, facts: readonly Fact[], now: Date): Promise<AppliedFacts> {
  const touched = new ChangedObjects();
  const context = { tx, now };
  const of = <K extends Fact["kind"]>(kind: K): Extract<Fact, { kind: K }>[] =>
    facts.filter((fact): fact is Extract<Fact, { kind: K }> => fact.kind === kind);
  // Always in this order, rows in the order of their keys: two appliers cannot wait for each other.
  const intents = await applyTable(context, PAYMENT_INTENTS, of("payment_intent"));
  const charges = await applyTable(context, CHARGES, of("charge"));
  const refunds = await applyTable(context, REFUNDS, of("refund"));
  const disputes = await applyTable(context, DISPUTES, of("dispute"));
  const keys = await applyKeys(context, of("key"));
  const missing = await applyMissing(context, of("missing"));
  for (const row of intents) touch(touched, "payment_intent", row, "id");
  for (const row of charges) touch(touched, "charge", row, "charge_id");
  for (const row of [...refunds, ...disputes]) touchMoneyBack(touched, row);
  for (const key of keys) touchKey(touched, key);
  for (const row of missing) touched.add({ kind: "payment_intent", ...row });
  await markChanged(tx, { objects: touched.list(), now });
  return {
    changed: {
      paymentIntents: intents.length,
      charges: charges.length,
      refunds: refunds.length,
      disputes: disputes.length,
      keys: keys.length,
      missing: missing.length,
    },
  };
}

interface Context {
  readonly tx: Db;
  readonly now: Date;
}

/** Merges the facts of one table; returns the rows whose content changed. */
async function applyTable(
  context: Context,
  table: MirrorTable,
  facts: readonly ObjectFact[],
): Promise<Statement[]> {
  const rules = Object.fromEntries(table.columns.map((column) => [column.name, column.rule]));
  const statements = joinByRow(table, rules, facts.map(statementOf));
  const changed: Statement[] = [];
  for (let from = 0; from < statements.length; from += ROWS_A_STATEMENT_MAX) {
    const chunk = statements.slice(from, from + ROWS_A_STATEMENT_MAX);
    changed.push(...(await applyChunk(context, { table, rules, chunk })));
  }
  return changed;
}

async function applyChunk(
  { tx, now }: Context,
  input: { readonly table: MirrorTable; readonly rules: Rules; readonly chunk: Statement[] },
): Promise<Statement[]> {
  const { table, rules, chunk } = input;
  const made = await insertMissing(tx, table, { statements: chunk, now });
  const known = chunk.filter((statement) => !made.has(keyOf(table, statement)));
  const changed = chunk.filter((statement) => made.has(keyOf(table, statement)));
  if (known.length === 0) return changed;
  const stored = await lockRows(tx, table, known);
  const writes: MirrorWrite[] = [];
  for (const statement of known) {
    const row = stored.get(keyOf(table, statement));
    // Nobody deletes mirror rows; if somebody did, the next statement inserts it again.
    if (row === undefined) continue;
    const merged = mergeStatements(rules, row.statement, statement);
    const found = row.missingSince !== null && row.missingSince.getTime() <= merged.newestMs;
    if (sameStatement(merged, row.statement) && !found) continue;
    const differs = found || !sameColumns(merged, row.statement);
    writes.push({ statement: merged, changed: differs });
    if (differs) changed.push(merged);
  }
  if (writes.length > 0) await updateRows(tx, table, { writes, now });
  return changed;
}

/** One statement per row, in the order of the keys. */
function joinByRow(table: MirrorTable, rules: Rules, statements: Statement[]): Statement[] {
  const joined = new Map<string, Statement>();
  for (const statement of statements) {
    const key = keyOf(table, statement);
    const before = joined.get(key);
    joined.set(key, before === undefined ? statement : mergeStatements(rules, before, statement));
  }
  return [...joined].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, statement]) => statement);
}

async function applyKeys({ tx }: Context, facts: readonly KeyFact[]): Promise<KeyFact[]> {
  if (facts.length === 0) return [];
  const first = new Map<string, KeyFact>();
  for (const fact of facts) {
    const key = [fact.scope, fact.objectId, fact.idempotencyKey].join("\u0000");
    const before = first.get(key);
    if (before === undefined || isEarlier(fact, before)) first.set(key, fact);
  }
  const list = [...first.values()];
  // The earliest event of a key is kept, so that the order of arrival does not show.
  const result = await tx.query<{ scope: string; object_id: string; idempotency_key: string }>(
    `insert into tallyd.object_key as stored (scope, object_id, idempotency_key, event_id, at)
     select scope, object_id, idempotency_key, event_id, at
       from jsonb_to_recordset($1::jsonb)
         as given (scope text, object_id text, idempotency_key text, event_id text, at timestamptz)
      order by scope collate "C", object_id collate "C", idempotency_key collate "C"
         on conflict (scope, object_id, idempotency_key)
            do update set event_id = excluded.event_id, at = excluded.at
                where (excluded.at, excluded.event_id collate "C")
                      < (stored.at, stored.event_id collate "C")
     returning scope, object_id, idempotency_key`,
    [
      JSON.stringify(
        list.map((fact) => ({
          scope: fact.scope,
          object_id: fact.objectId,
          idempotency_key: fact.idempotencyKey,
          event_id: fact.eventId,
          at: fact.at,
        })),
      ),
    ],
  );
  const written = result.rows.map((row) =>
    first.get([row.scope, row.object_id, row.idempotency_key].join("\u0000")),
  );
  return written.filter((fact) => fact !== undefined);
}

function isEarlier(a: KeyFact, b: KeyFact): boolean {
  const difference = a.at.getTime() - b.at.getTime();
  return difference === 0 ? a.eventId < b.eventId : difference < 0;
}

/** Marks denied payment intents, unless something newer was seen of them. */
async function applyMissing(
  { tx, now }: Context,
  facts: readonly MissingFact[],
): Promise<{ scope: string; id: string }[]> {
  if (facts.length === 0) return [];
  const result = await tx.query<{ scope: string; id: string; was_missing: boolean }>(
    `with denied as (
       select scope, id, max(at) as at
         from jsonb_to_recordset($1::jsonb) as given (scope text, id text, at timestamptz)
        group by scope, id
     ),
     stored as (
       select intent.scope, intent.id, intent.missing_since, denied.at,
              greatest(intent.version_at, to_timestamp(
                (intent.field_versions ->> 'newest')::numeric / 1000)) as newest_at
         from tallyd.stripe_payment_intent as intent
         join denied using (scope, id)
        order by intent.scope collate "C", intent.id collate "C"
          for update of intent
     )
     update tallyd.stripe_payment_intent as intent
        set missing_since = greatest(stored.missing_since, stored.at),
            seen_at = $2
       from stored
      where intent.scope = stored.scope
        and intent.id = stored.id
        and stored.at > stored.newest_at
        and (stored.missing_since is null or stored.missing_since < stored.at)
     returning intent.scope, intent.id, stored.missing_since is not null as was_missing`,
    [JSON.stringify(facts.map(({ scope, id, at }) => ({ scope, id, at }))), now],
  );
  return result.rows.filter((row) => !row.was_missing).map(({ scope, id }) => ({ scope, id }));
}

function touch(
  touched: ChangedObjects,
  kind: "charge" | "payment_intent",
  row: Statement,
  column: string,
): void {
  touched.add({ kind, scope: String(row.columns["scope"]), id: String(row.columns[column]) });
}

/** A refund or dispute changes what its charge is worth. */
function touchMoneyBack(touched: ChangedObjects, row: Statement): void {
  const { scope, charge_id: charge, payment_intent: intent } = row.columns;
  const at = { scope: String(scope) };
  if (typeof charge === "string") touched.add({ kind: "charge", ...at, id: charge });
  else if (typeof intent === "string") {
    touched.add({ kind: "payment_intent", ...at, id: intent });
  }
}

function touchKey(touched: ChangedObjects, key: KeyFact): void {
  const { scope, objectId: id } = key;
  if (id.startsWith("pi_")) touched.add({ kind: "payment_intent", scope, id });
  // The keys of refunds and disputes come with those objects, which name their charge.
  else if (/^(ch|py)_/.test(id)) touched.add({ kind: "charge", scope, id });
}
