import type { PoolClient } from "pg";

import { sqlState } from "../../store/tx.ts";
import type { LocalShape } from "./shape.ts";

/** A column as the catalogue of the team's database has it. */
export interface CatalogColumn {
  readonly name: string;
  /** As it is written in SQL: quoted where it must be. */
  readonly quoted: string;
  readonly type: string;
  readonly not_null: boolean;
  readonly can_select: boolean;
  readonly can_update: boolean;
}

/** The relation that the setting names. */
export interface Relation {
  readonly oid: string;
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  /** `schema.table` as it is written in SQL: quoted where it must be. */
  readonly quoted: string;
  /** The role that asked, as it is written in SQL. */
  readonly role: string;
  readonly columns: readonly CatalogColumn[];
}

/** The kinds of relations that can be read, by their letter in `pg_class.relkind`. */
export const KINDS: Readonly<Record<string, LocalShape["kind"]>> = {
  r: "table",
  p: "table",
  v: "view",
  m: "materialized view",
  f: "foreign table",
};

// PostgreSQL allows no more columns in a table.
const COLUMNS_MAX = 1_600;

/**
 * Finds the relation that `table` names, by PostgreSQL's own rules for names; `null`: there is
 * none.
 */
export async function findRelation(db: PoolClient, table: string): Promise<Relation | null> {
  const found = await db.query<{
    oid: string;
    schema: string;
    name: string;
    kind: string;
    quoted: string;
    role: string;
  }>(
    `select c.oid::text as oid,
            n.nspname as schema,
            c.relname as name,
            c.relkind as kind,
            format('%I.%I', n.nspname, c.relname) as quoted,
            quote_ident(current_user) as role
       from pg_catalog.pg_class c
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.oid = to_regclass($1)`,
    [table],
  );
  const relation = found.rows[0];
  if (relation === undefined) return null;
  const columns = await db.query<CatalogColumn>(
    `select a.attname as name,
            quote_ident(a.attname) as quoted,
            format_type(a.atttypid, a.atttypmod) as type,
            a.attnotnull as not_null,
            has_column_privilege(a.attrelid, a.attnum, 'select') as can_select,
            has_column_privilege(a.attrelid, a.attnum, 'update') as can_update
       from pg_catalog.pg_attribute a
      where a.attrelid = $1::oid
        and a.attnum > 0
        and not a.attisdropped
      order by a.attnum
      limit $2`,
    [relation.oid, COLUMNS_MAX],
  );
  return { ...relation, columns: columns.rows };
}

/** Other relations of this name, for the advice about one that is absent. */
export async function relationsLike(db: PoolClient, table: string): Promise<string[]> {
  const bare = table.replaceAll('"', "").split(".").at(-1) ?? table;
  const found = await db.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name
       from pg_catalog.pg_class c
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where lower(c.relname) = lower($1)
        and c.relkind in ('r', 'p', 'v', 'm', 'f')
      order by 1
      limit 5`,
    [bare],
  );
  return found.rows.map((row) => row.name);
}

/** What the indexes give: is the id unique, and can changes be found without reading everything? */
export async function readIndexes(
  db: PoolClient,
  input: { readonly oid: string; readonly id: string | null; readonly updatedAt: string | null },
): Promise<{ readonly idUnique: boolean; readonly updatedAtIndexed: boolean }> {
  const found = await db.query<{ id_unique: boolean; updated_at_indexed: boolean }>(
    `select coalesce(bool_or(i.indisunique and i.indnkeyatts = 1 and a.attname = $2), false)
              as id_unique,
            coalesce(bool_or(a.attname = $3), false) as updated_at_indexed
       from pg_catalog.pg_index i
       join pg_catalog.pg_attribute a
         on a.attrelid = i.indrelid
        and a.attnum = i.indkey[0]
      where i.indrelid = $1::oid
        and i.indisvalid
        and i.indpred is null`,
    [input.oid, input.id, input.updatedAt],
  );
  const row = found.rows[0];
  return {
    idUnique: row?.id_unique ?? false,
    updatedAtIndexed: row?.updated_at_indexed ?? false,
  };
}

/** The type of an expression over the relation, as PostgreSQL names it. */
export interface ExpressionType {
  /** Without modifiers: `numeric`, `timestamp without time zone`. */
  readonly type: string;
  /** Digits after the point of a numeric; `null`: not fixed. */
  readonly scale: number | null;
}

// A check reads no row; what takes longer waits for a lock.
export const CHECK_MAX_MS = 10_000;

const PERMISSION_DENIED = "42501";
// The server did not come to a verdict: connection (08), lost race (40), resources (53), lock
// (55P03), cancelled or shut down (57), its machine (58), its own fault (XX) (case B26).
const NO_VERDICT = /^(?:08|40|53|55P03|57|58|XX)/;
// Typmods of numeric keep the scale in the lowest eleven bits, signed; four is their header.
const NUMERIC_OID = 1_700;
const NUMERIC_HEADER = 4;
const SCALE_BITS = 0x7ff;
const SCALE_SIGN = 1_024;

/**
 * Asks PostgreSQL for the type of an expression without reading a row. `fault` is PostgreSQL's own
 * message where the expression does not work; `denied`: because a right is lacking.
 */
export async function typeOf(
  db: PoolClient,
  input: { readonly relation: string; readonly alias: string; readonly expression: string },
): Promise<ExpressionType | { readonly fault: string; readonly denied: boolean }> {
  try {
    // The parameter makes it one statement whatever the expression holds.
    const checked = await db.query({
      text:
        `select (${input.expression}\n) as value\n` +
        `  from ${input.relation} as ${input.alias}\n limit $1::int`,
      values: [0],
    });
    const field = checked.fields[0];
    if (field === undefined || checked.fields.length !== 1) {
      return { fault: "it is not one value", denied: false };
    }
    const named = await db.query<{ type: string }>("select format_type($1::oid, null) as type", [
      field.dataTypeID,
    ]);
    const modifier = field.dataTypeModifier;
    const fixed = field.dataTypeID === NUMERIC_OID && modifier >= NUMERIC_HEADER;
    const scale = (((modifier - NUMERIC_HEADER) & SCALE_BITS) ^ SCALE_SIGN) - SCALE_SIGN;
    return { type: named.rows[0]?.type ?? "unknown", scale: fixed ? scale : null };
  } catch (error) {
    // Only the server's own verdict about the statement is a fault of the expression.
    const state = sqlState(error);
    if (state === undefined || NO_VERDICT.test(state) || !(error instanceof Error)) throw error;
    return { fault: error.message, denied: state === PERMISSION_DENIED };
  }
}
