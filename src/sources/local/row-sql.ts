import { FIELD_NAMES } from "./fields.ts";
import type { IntentField } from "./fields.ts";
import { reducedResponseSql } from "./response-kind.ts";
import type { LocalShape } from "./shape.ts";
import { wallBoundSql } from "./time-sql.ts";
import pg from "pg";

/** All fields as text, in the words of the mapping; a field that the table lacks is null. */
export function selectList(shape: LocalShape): string {
  return FIELD_NAMES.map((field) => `${fieldText(shape, field)} as "${field}"`).join(",\n       ");
}

function fieldText(shape: LocalShape, field: IntentField): string {
  const found = shape.fields[field];
  if (found === null) return "null::text";
  if (field === "createdAt" || field === "updatedAt" || field === "validBefore") {
    // Seconds with all digits; infinity comes as a word and stops no other row.
    return `extract(epoch from ${found.sql}\n)::text`;
  }
  if (field === "response" && found.type === "jsonb") return reducedResponseSql(`(${found.sql}\n)`);
  return `(${found.sql}\n)::text`;
}

/** The readable columns of the relation, for the inner select of a page. */
export function columnList(shape: LocalShape): string {
  return shape.columns.map((column) => pg.escapeIdentifier(column.name)).join(", ");
}

/** SQL of the intent id and the type that its parameter is cast to. */
export function idSql(shape: LocalShape): { readonly sql: string; readonly type: string } {
  const id = shape.fields.intentId;
  if (id === null) throw new RangeError("a shape without an intent id cannot be read");
  if (shape.idType !== "other") return { sql: `(${id.sql}\n)`, type: shape.idType };
  return { sql: `(${id.sql}\n)::text`, type: "text" };
}

const ID_FORMS: Readonly<Record<string, RegExp>> = {
  smallint: /^-?\d{1,4}$/,
  integer: /^-?\d{1,9}$/,
  bigint: /^-?\d{1,18}$/,
  uuid: /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i,
};

/** The ids that a column of the shape's type can hold at all; others would fail the query. */
export function possibleIds(shape: LocalShape, ids: readonly string[]): string[] {
  const form = ID_FORMS[shape.idType];
  return ids.filter((id) => form === undefined || form.test(id));
}

/** The time of change, else of creation, as a timestamptz. */
export function changeSql(shape: LocalShape): string {
  const { createdAt, updatedAt } = shape.fields;
  const created = createdAt?.sql ?? "null::timestamptz";
  if (updatedAt === null) return created;
  return updatedAt.notNull ? updatedAt.sql : `coalesce(${updatedAt.sql}, ${created})`;
}

/**
 * A condition that keeps every row changed at or after the parameter, and that an index on the
 * plain column can answer; the exact comparison stands beside it.
 */
export function changedSinceSql(shape: LocalShape, parameter: string): string {
  const { createdAt, updatedAt } = shape.fields;
  const from = (field: "createdAt" | "updatedAt"): string => {
    const found = shape.fields[field];
    if (found === null) return "false";
    const bound =
      found.zoneless && shape.zone !== null
        ? wallBoundSql(parameter, shape.zone)
        : `${parameter}::timestamptz`;
    return `(${found.given}\n) >= ${bound}`;
  };
  if (updatedAt === null || createdAt === null) return from("createdAt");
  if (updatedAt.notNull) return from("updatedAt");
  return `(${from("updatedAt")} or ((${updatedAt.given}\n) is null and ${from("createdAt")}))`;
}
