/**
 * Reading and writing statements of one mirror table, many rows a statement. The SQL is built once
 * from the table's own constant column list; values travel as one JSON parameter.
 */
import { z } from "zod";

import { BugError } from "../core/errors.ts";
import type { Order, Statement, Value } from "./mirror-merge.ts";
import type { MirrorColumn, MirrorTable } from "./mirror-tables.ts";
import { toBigint } from "./pool.ts";
import type { Db } from "./pool.ts";

/** A row to write; `changed`: what it says changed, not only when it was said. */
export interface MirrorWrite {
  readonly statement: Statement;
  readonly changed: boolean;
}

/** A stored row; `missingSince` is the provider's denial of the id. */
export interface StoredRow {
  readonly statement: Statement;
  readonly missingSince: Date | null;
}

const order = z.tuple([z.number(), z.number(), z.number(), z.number()]);
const versionsSchema = z.object({
  fields: z.record(z.string(), order).optional(),
  newest: z.number().optional(),
});

/** Key of a row inside one table. NUL cannot be in an id, so the parts stay apart. */
export function rowKey(scope: string, id: string): string {
  return `${scope}\u0000${id}`;
}

/** Key of a statement's row. */
export function keyOf(table: MirrorTable, statement: Statement): string {
  return rowKey(String(statement.columns["scope"]), String(statement.columns[table.id]));
}

/** Inserts the rows that are not there yet and returns the keys of those. */
export async function insertMissing(
  db: Db,
  table: MirrorTable,
  input: { readonly statements: readonly Statement[]; readonly now: Date },
): Promise<ReadonlySet<string>> {
  const names = table.columns.map((column) => column.name).join(", ");
  const result = await db.query<Record<"scope" | "id", string>>(
    `insert into tallyd.${table.name}
            (${names}, version_at, version_rank, field_versions, first_seen_at, seen_at)
     select ${names}, version_at, version_rank, field_versions, $2, $2
       from jsonb_to_recordset($1::jsonb) as given (${recordType(table)})
      order by scope collate "C", ${table.id} collate "C"
         on conflict (scope, ${table.id}) do nothing
     returning scope, ${table.id} as id`,
    [toJson(table, input.statements), input.now],
  );
  return new Set(result.rows.map((row) => rowKey(row.scope, row.id)));
}

/** Reads the rows of the statements and locks them, in the order of their keys. */
export async function lockRows(
  db: Db,
  table: MirrorTable,
  statements: readonly Statement[],
): Promise<ReadonlyMap<string, StoredRow>> {
  const names = table.columns.map((column) => `stored.${column.name}`).join(", ");
  const missing = table.missing ? "stored.missing_since" : "null::timestamptz as missing_since";
  const result = await db.query<Record<string, unknown>>(
    `select ${names}, stored.version_at, stored.version_rank, stored.field_versions, ${missing}
       from tallyd.${table.name} as stored
       join jsonb_to_recordset($1::jsonb) as wanted (scope text, id text)
         on stored.scope = wanted.scope
        and stored.${table.id} = wanted.id
      order by stored.scope collate "C", stored.${table.id} collate "C"
        for update of stored`,
    [
      JSON.stringify(
        statements.map(({ columns }) => ({ scope: columns["scope"], id: columns[table.id] })),
      ),
    ],
  );
  const rows = result.rows.map((row) => storedRow(table, row));
  return new Map(rows.map((row) => [keyOf(table, row.statement), row]));
}

/** Writes rows that are locked already. A denial older than what is now known is taken back. */
export async function updateRows(
  db: Db,
  table: MirrorTable,
  input: { readonly writes: readonly MirrorWrite[]; readonly now: Date },
): Promise<void> {
  const sets = table.columns
    .filter((column) => column.rule !== "key")
    .map((column) => `${column.name} = given.${column.name}`);
  if (table.missing) {
    sets.push(
      `missing_since = case
         when stored.missing_since > given.newest_at then stored.missing_since end`,
    );
  }
  const extra = new Map(input.writes.map((write) => [write.statement, write.changed]));
  await db.query(
    `update tallyd.${table.name} as stored
        set ${sets.join(", ")},
            version_at = given.version_at,
            version_rank = given.version_rank,
            field_versions = given.field_versions,
            seen_at = case when given.changed then $2 else stored.seen_at end
       from jsonb_to_recordset($1::jsonb)
         as given (${recordType(table)}, newest_at timestamptz, changed boolean)
      where stored.scope = given.scope
        and stored.${table.id} = given.${table.id}`,
    [toJson(table, [...extra.keys()], extra), input.now],
  );
}

function recordType(table: MirrorTable): string {
  const own = table.columns.map((column) => `${column.name} ${column.type}`).join(", ");
  return `${own}, version_at timestamptz, version_rank integer, field_versions jsonb`;
}

function toJson(
  table: MirrorTable,
  statements: readonly Statement[],
  changed?: ReadonlyMap<Statement, boolean>,
): string {
  return JSON.stringify(
    statements.map((statement) => {
      const row: Record<string, unknown> = {
        version_at: new Date(statement.order[2]),
        version_rank: statement.order[3],
        field_versions: versionsOf(statement),
        newest_at: new Date(statement.newestMs),
        changed: changed?.get(statement) ?? true,
      };
      for (const column of table.columns) row[column.name] = jsonValue(column, statement);
      return row;
    }),
  );
}

function jsonValue(column: MirrorColumn, statement: Statement): string | boolean | Date | null {
  const value = statement.columns[column.name] ?? null;
  if (column.name === "owned" && value === null) return "unknown";
  return typeof value === "bigint" ? value.toString() : value;
}

function versionsOf(statement: Statement): z.infer<typeof versionsSchema> {
  const { fieldOrders, newestMs } = statement;
  return {
    ...(Object.keys(fieldOrders).length === 0
      ? {}
      : { fields: fieldOrders as Record<string, [number, number, number, number]> }),
    ...(newestMs === statement.order[2] ? {} : { newest: newestMs }),
  };
}

function storedRow(table: MirrorTable, row: Readonly<Record<string, unknown>>): StoredRow {
  const columns: Record<string, Value> = {};
  for (const column of table.columns) columns[column.name] = storedValue(column, row[column.name]);
  const versions = versionsSchema.parse(row["field_versions"]);
  const versionAt = row["version_at"];
  const versionRank = row["version_rank"];
  if (!(versionAt instanceof Date) || typeof versionRank !== "number") {
    throw new BugError(`tallyd.${table.name} holds a row without a version`);
  }
  const order: Order = [...table.standing(columns), versionAt.getTime(), versionRank];
  const missing = row["missing_since"];
  return {
    statement: {
      columns,
      order,
      fieldOrders: versions.fields ?? {},
      newestMs: versions.newest ?? versionAt.getTime(),
    },
    missingSince: missing instanceof Date ? missing : null,
  };
}

function storedValue(column: MirrorColumn, value: unknown): Value {
  if (value === null) return null;
  if (column.name === "owned" && value === "unknown") return null;
  if (column.type === "numeric" && typeof value === "string") return toBigint(value);
  if (column.type === "text" && typeof value === "string") return value;
  if (column.type === "boolean" && typeof value === "boolean") return value;
  if (column.type === "timestamptz" && value instanceof Date) return value;
  throw new BugError(`column ${column.name} came back as ${typeof value}, not ${column.type}`);
}
