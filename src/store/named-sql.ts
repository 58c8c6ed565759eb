import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";

import type { PoolClient, QueryResultRow } from "pg";

import { BugError } from "../core/errors.ts";
import type { Db } from "./pool.ts";
import { packageSqlDir } from "./sql-files.ts";

/** A statement whose parameters have names; `:'name'` is also psql's own spelling. */
export interface NamedSql {
  /** Name under which a connection keeps it prepared: the text's hash. */
  readonly id: string;
  readonly text: string;
  /** Parameter names in the order of `$1`, `$2` …, each once. */
  readonly names: readonly string[];
}

const PARAMETER = /:'([a-z_]+)'/g;

/** Turns every `:'name'` into `$n`; a name used twice is one parameter. */
export function bindNames(sql: string): NamedSql {
  const names: string[] = [];
  const text = sql.replace(PARAMETER, (_match, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${String(names.indexOf(name) + 1)}`;
  });
  return { id: createHash("sha256").update(text).digest("hex").slice(0, 40), text, names };
}

/** Reads `sql/<file>`, relative to the package's sql folder. */
export function readNamedSql(file: string): NamedSql {
  return bindNames(readFileSync(path.join(packageSqlDir(), file), "utf8"));
}

/**
 * For the rest of this transaction: plans of named statements over a batch of keys are made once
 * for the connection and always go by index, however small the tables still are. Planning the
 * detectors anew took ten times as long as running them over one operation.
 */
export async function planByKeys(tx: PoolClient): Promise<void> {
  await tx.query("set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off");
}

/**
 * Runs a named statement. Throws `BugError` when a parameter of the statement was not given, so
 * that
 * a misspelt name never becomes a silent null. The connection keeps the statement prepared.
 */
export async function runNamed<Row extends QueryResultRow>(
  db: Db,
  sql: NamedSql,
  parameters: Readonly<Record<string, unknown>>,
): Promise<Row[]> {
  const values = sql.names.map((name) => {
    if (!(name in parameters)) throw new BugError(`the parameter ${name} was not given`);
    return parameters[name];
  });
  const result = await db.query<Row>({ name: sql.id, text: sql.text, values });
  return result.rows;
}
