import type { Pool, PoolClient } from "pg";
import pg from "pg";

import { ConfigError } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import { withTx } from "../../store/tx.ts";
import { FIELD_NAMES, FIELDS } from "./fields.ts";
import type { IntentField } from "./fields.ts";
import { createOwnTable } from "./own-table.ts";
import {
  CHECK_MAX_MS,
  KINDS,
  findRelation,
  readIndexes,
  relationsLike,
  typeOf,
} from "./relation.ts";
import type { Relation } from "./relation.ts";
import { remarksOf } from "./remarks.ts";
import type { FieldSql, LocalShape } from "./shape.ts";
import { reading } from "./team-errors.ts";
import { zoneSql } from "./time-sql.ts";
import { amountMaxOf, judgeType } from "./type-rules.ts";
import { judgeWrites, spellingOf } from "./writes.ts";

type IntentsSettings = Settings["intents"];

interface Place {
  readonly relation: Relation;
  readonly quoted: string;
  readonly alias: string;
}

// Types of ids whose parameters can be compared as they are, so that an index is used.
const ID_TYPES = ["text", "smallint", "integer", "bigint", "uuid"];

/**
 * Looks at the team's table: finds it (or makes tallyd's own, where that is allowed), finds the SQL
 * of every field and what may be written. Throws a ConfigError with all faults of the table and the
 * mapping at once, an UnreadableError when the database or a right is missing.
 */
export async function inspectLocal(team: Pool, intents: IntentsSettings): Promise<LocalShape> {
  return reading(async () => {
    const found = await inspectExisting(team, intents);
    if (found !== null) return found;
    if (!intents.create) await refuseAbsent(team, intents);
    await createOwnTable(team, intents.table);
    const created = await inspectExisting(team, intents);
    if (created === null) throw new ConfigError([absentFault(intents.table, [])]);
    return created;
  });
}

async function refuseAbsent(team: Pool, intents: IntentsSettings): Promise<void> {
  const like = await withTx(team, (tx) => relationsLike(tx, intents.table), { readOnly: true });
  throw new ConfigError([absentFault(intents.table, like)]);
}

function absentFault(table: string, like: readonly string[]): string {
  const near = like.length === 0 ? "" : `; relations of that name: ${like.join(", ")}`;
  return (
    `INTENTS_TABLE: saw ${JSON.stringify(table)}, and the database has no such relation${near}; ` +
    "allowed: an existing table, view or foreign table, " +
    "or INTENTS_CREATE=true, and tallyd creates a table of its own there"
  );
}

async function inspectExisting(team: Pool, intents: IntentsSettings): Promise<LocalShape | null> {
  return withTx(
    team,
    async (tx) => {
      const relation = await findRelation(tx, intents.table);
      return relation === null ? null : buildShape(tx, relation, intents);
    },
    { readOnly: true, statementTimeoutMs: CHECK_MAX_MS },
  );
}

async function buildShape(
  tx: PoolClient,
  relation: Relation,
  intents: IntentsSettings,
): Promise<LocalShape> {
  const kind = KINDS[relation.kind];
  if (kind === undefined) {
    const allowed = "allowed: a table, view or foreign table";
    throw new ConfigError([`INTENTS_TABLE: ${intents.table} is no table or view; ${allowed}`]);
  }
  const alias = pg.escapeIdentifier(relation.name);
  const place = { relation, quoted: `${pg.escapeIdentifier(relation.schema)}.${alias}`, alias };
  const checked = await checkFields(tx, place, intents);
  const writes = judgeWrites({ relation, kind, intents });
  const faults = [...missingFaults(relation, intents), ...checked.faults, ...writes.faults];
  if (faults.length === 0) faults.push(...(await checkTogether(tx, place, checked.fields)));
  if (faults.length > 0) throw new ConfigError(faults);
  const { fields } = checked;
  const indexes = await readIndexes(tx, {
    oid: relation.oid,
    id: fields.intentId?.column ?? null,
    updatedAt: fields.updatedAt?.column ?? null,
  });
  const base = {
    relation: place.quoted,
    alias,
    kind,
    columns: relation.columns
      .filter((column) => column.can_select)
      .map((column) => ({
        name: column.name,
        type: column.type,
        notNull: column.not_null,
        canUpdate: column.can_update,
      })),
    fields,
    mapped: intents.columns !== null,
    idType: idTypeOf(fields.intentId),
    zone: intents.timeZone === null ? null : zoneSql(intents.timeZone),
    states: intents.states,
    spelling: spellingOf(intents),
    writes: writes.columns,
    writeRefusal: writes.refusal,
    lackingRights: writes.lacking,
    amountMax: fields.amount === null ? null : amountMaxOf(fields.amount),
  };
  return { ...base, remarks: [...checked.remarks, ...remarksOf({ shape: base, indexes })] };
}

/** The expression of each field: as mapped, or the column of that very name. */
function givenExpressions(
  relation: Relation,
  intents: IntentsSettings,
): ReadonlyMap<IntentField, string> {
  const names = relation.columns.filter((column) => column.can_select).map(({ name }) => name);
  const given = FIELD_NAMES.flatMap((field): [IntentField, string][] => {
    if (intents.columns !== null) {
      const mapped = intents.columns[field];
      return mapped === undefined || mapped === null ? [] : [[field, mapped]];
    }
    const { column } = FIELDS[field];
    return names.includes(column) ? [[field, pg.escapeIdentifier(column)]] : [];
  });
  return new Map(given);
}

function missingFaults(relation: Relation, intents: IntentsSettings): string[] {
  const given = givenExpressions(relation, intents);
  const missing = FIELD_NAMES.filter((field) => FIELDS[field].mandatory && !given.has(field));
  const hidden = relation.columns.filter(
    ({ name, can_select }) => !can_select && missing.some((field) => FIELDS[field].column === name),
  );
  const absent = missing.filter(
    (field) => !hidden.some(({ name }) => FIELDS[field].column === name),
  );
  const seen = relation.columns.map(({ name }) => name).join(", ");
  const faults = absent.map((field) => {
    const { column } = FIELDS[field];
    const present = relation.columns.some(({ name }) => name === column);
    return (
      `intents.columns.${field}: missing in ${intents.table}, whose columns are ${seen}; ` +
      `allowed: add "${field}": "${present ? column : "<SQL expression>"}" to intents.columns ` +
      "in the file of TALLYD_CONFIG"
    );
  });
  return hidden.length === 0 ? faults : [hiddenFault(relation, hidden), ...faults];
}

/** Columns that are there and may not be read are no question of the mapping. */
function hiddenFault(relation: Relation, hidden: Relation["columns"]): string {
  const { quoted, role } = relation;
  return (
    `INTENTS_TABLE: ${quoted} is there, and the role ${role} may not read its columns ` +
    `${hidden.map((column) => column.quoted).join(", ")}; ` +
    `allowed: ${selectGrant(relation)} (deploy/grants.sql)`
  );
}

function selectGrant({ quoted, role }: Relation): string {
  return `grant select on ${quoted} to ${role}`;
}

interface CheckedFields {
  readonly fields: Record<IntentField, FieldSql | null>;
  readonly faults: readonly string[];
  readonly remarks: LocalShape["remarks"];
}

async function checkFields(
  tx: PoolClient,
  place: Place,
  intents: IntentsSettings,
): Promise<CheckedFields> {
  const fields = Object.fromEntries(FIELD_NAMES.map((field) => [field, null])) as Record<
    IntentField,
    FieldSql | null
  >;
  const faults: string[] = [];
  const remarks: LocalShape["remarks"][number][] = [];
  for (const [field, expression] of givenExpressions(place.relation, intents)) {
    const checked = await checkField(tx, { place, intents, field, expression });
    if ("given" in checked) {
      fields[field] = checked;
      continue;
    }
    // A column that merely has the name of an optional field stops nothing: it is not read.
    if (intents.columns === null && !FIELDS[field].mandatory && !checked.zone) {
      const { weaker, column } = FIELDS[field];
      remarks.push({
        name: `column ${column}`,
        onChain: FIELDS[field].onChain,
        status: "warning",
        seen: checked.seen,
        meaning: `the column is not read: ${weaker}`,
        advice: checked.advice,
      });
      continue;
    }
    faults.push(
      `intents.columns.${field}: saw ${expression} (${checked.seen}); allowed: ${checked.advice}`,
    );
  }
  return { fields, faults, remarks };
}

async function checkField(
  tx: PoolClient,
  input: { place: Place; intents: IntentsSettings; field: IntentField; expression: string },
): Promise<FieldSql | { seen: string; advice: string; zone: boolean }> {
  const { place, intents, field, expression } = input;
  await tx.query("savepoint field");
  const type = await typeOf(tx, { relation: place.quoted, alias: place.alias, expression });
  await tx.query("rollback to savepoint field");
  if ("fault" in type) {
    const advice = type.denied
      ? `${selectGrant(place.relation)} (deploy/grants.sql)`
      : `a SQL expression over one row of ${intents.table}`;
    return { seen: `PostgreSQL says: ${type.fault}`, advice, zone: false };
  }
  const zone = intents.timeZone === null ? null : zoneSql(intents.timeZone);
  const verdict = judgeType(field, { expression, type, zone });
  if (!verdict.ok) {
    const zoneless = type.type === "timestamp without time zone";
    return { seen: verdict.seen, advice: verdict.advice, zone: zoneless };
  }
  const column = place.relation.columns.find(
    ({ name }) => expression === name || expression === pg.escapeIdentifier(name),
  );
  return {
    given: expression,
    sql: verdict.sql,
    type: type.type,
    zoneless: verdict.zoneless,
    column: column?.name ?? null,
    notNull: column?.not_null ?? false,
  };
}

/** Expressions that work alone may not work side by side (an aggregate, an open comment). */
async function checkTogether(
  tx: PoolClient,
  place: Place,
  fields: CheckedFields["fields"],
): Promise<string[]> {
  const all = FIELD_NAMES.flatMap((field) => fields[field] ?? []);
  const expression = `row(${all.map((field) => `(${field.sql}\n)`).join(", ")})::text`;
  await tx.query("savepoint field");
  // In the form in which pages are read: over the named columns, without the system's.
  const names = place.relation.columns.filter((column) => column.can_select);
  const columns = names.map(({ name }) => pg.escapeIdentifier(name)).join(", ");
  const relation = `(select ${columns} from ${place.quoted} as ${place.alias})`;
  const type = await typeOf(tx, { relation, alias: place.alias, expression });
  await tx.query("rollback to savepoint field");
  if (!("fault" in type)) return [];
  return [
    `intents.columns: PostgreSQL refuses the expressions side by side: ${type.fault}; ` +
      "allowed: expressions over one row's columns, without aggregates and comments",
  ];
}

function idTypeOf(id: FieldSql | null): string {
  const type = id?.type === "character varying" ? "text" : (id?.type ?? "text");
  return ID_TYPES.includes(type) ? type : "other";
}
