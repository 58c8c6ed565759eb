import type { Db } from "./pool.ts";

// The tables that matching and detectors join. They are empty when the schema is made, and
// autovacuum looks only once a minute: until then every plan is made for empty tables.
const TABLES = [
  "intent",
  "stripe_payment_intent",
  "charge",
  "object_key",
  "refund",
  "dispute",
  "evm_transfer",
  "intent_match",
  "charge_match",
  "incident",
] as const;

// PostgreSQL's own threshold: below it a plan for an empty table does no harm.
const CHANGES_MIN = 50;

/**
 * Refreshes the planner's statistics of tables that have at least doubled since they were last
 * looked at, so about once for each power of two; the rest is autovacuum's affair. Returns how
 * many tables that were. Not inside a transaction.
 */
export async function refreshStatistics(db: Db): Promise<number> {
  const found = await db.query<{ name: (typeof TABLES)[number] }>(
    `select s.relname as name
       from pg_stat_user_tables s
       join pg_class c on c.oid = s.relid
      where s.schemaname = 'tallyd'
        and s.relname = any ($1::text[])
        and s.n_mod_since_analyze > greatest(c.reltuples, $2)`,
    [TABLES, CHANGES_MIN],
  );
  const grown = TABLES.filter((table) => found.rows.some((row) => row.name === table));
  for (const table of grown) await db.query(`analyze tallyd.${table}`);
  return grown.length;
}
