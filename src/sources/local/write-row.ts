import type { PoolClient } from "pg";
import pg from "pg";

import type { IntentRow } from "../../core/intent.ts";
import type { IntentState } from "../../core/states.ts";
import { sqlState, withTx } from "../../store/tx.ts";
import type { RawRow } from "./intent-row.ts";
import { convertPage, rowContext, snapshotMicros } from "./read-rows.ts";
import type { ReaderDeps } from "./read-rows.ts";
import { columnList, idSql, possibleIds, selectList } from "./row-sql.ts";
import type { LocalShape, ShapeWrites } from "./shape.ts";
import { reading } from "./team-errors.ts";

/** What the resolver wants to write, and what it must find there. */
export interface CasWrite {
  readonly intentId: string;
  readonly expectState: IntentState;
  /**
   * The row as it was decided on. Any of them that is given must still hold; `expectUpdatedAt` as
   * ISO 8601 with microseconds, or as a Date, then compared in whole milliseconds.
   */
  readonly expectUpdatedAt?: string | Date;
  readonly expectRowHash?: string;
  readonly set: {
    readonly state: IntentState;
    readonly chargeId?: string;
    readonly response?: Readonly<Record<string, unknown>>;
    /** Written only where the row has none. */
    readonly fingerprint?: string;
  };
}

export type CasResult =
  | { readonly outcome: "applied"; readonly row: IntentRow; readonly snapshotAt: string }
  | { readonly outcome: "lost_race"; readonly reason: string }
  | { readonly outcome: "refused"; readonly reason: string };

// The row's lock may be held by the team's own transaction; waiting longer than this loses the
// race.
const STATEMENT_MAX_MS = 10_000;

// States that somebody may have acted on: never written (README.md, what it settles by itself).
const FINAL: readonly string[] = ["recorded", "failed_terminal"];

class Abandoned extends Error {
  readonly result: CasResult;

  constructor(result: CasResult) {
    super(result.outcome);
    this.name = "Abandoned";
    this.result = result;
  }
}

/**
 * Writes one row of the team's table, if it is still the row that was decided on: same state, same
 * version, and neither recorded nor failed for good. Touches only the columns it must, never two
 * rows. Throws an UnreadableError when the database is out of reach: then nothing was written, or
 * the next read shows it.
 */
export async function casWrite(deps: ReaderDeps, write: CasWrite): Promise<CasResult> {
  const refusal = refusalOf(deps.shape, write);
  if (refusal !== null) return { outcome: "refused", reason: refusal };
  return reading(async () => {
    try {
      return await withTx(deps.team, (tx) => writeIn(tx, deps, write), {
        isolation: "repeatable read",
        statementTimeoutMs: STATEMENT_MAX_MS,
      });
    } catch (error) {
      if (error instanceof Abandoned) return error.result;
      const result = resultOfError(error);
      if (result === null) throw error;
      return result;
    }
  });
}

function refusalOf(shape: LocalShape, write: CasWrite): string | null {
  if (shape.writes === null) return shape.writeRefusal ?? "nothing may be written";
  if (FINAL.includes(write.expectState)) return `a row in ${write.expectState} is never written`;
  if (shape.spelling[write.set.state] === undefined) {
    return `intents.states has no name for ${write.set.state}`;
  }
  if (possibleIds(shape, [write.intentId]).length === 0) return "the table cannot hold this id";
  return null;
}

async function writeIn(tx: PoolClient, deps: ReaderDeps, write: CasWrite): Promise<CasResult> {
  const before = await readRow(tx, deps, write.intentId);
  const difference = differenceOf(before.rows, write);
  if (difference !== null) return { outcome: "lost_race", reason: difference };
  const [row] = before.rows;
  if (before.total !== 1 || row === undefined) {
    const reason = `${String(before.total)} rows have this id; one is allowed`;
    return { outcome: "refused", reason };
  }
  const { text, values } = updateStatement(deps.shape, write, row.rawState);
  const done = await tx.query(text, values);
  if (done.rowCount !== 1) {
    const reason = `the update reached ${String(done.rowCount ?? 0)} rows; one is allowed`;
    throw new Abandoned({ outcome: "refused", reason });
  }
  const after = await readRow(tx, deps, write.intentId);
  const written = after.rows[0];
  if (written?.state !== write.set.state || after.total !== 1) {
    const reason =
      "the row does not show the written state afterwards: a trigger or rule changed it";
    throw new Abandoned({ outcome: "refused", reason });
  }
  return { outcome: "applied", row: written, snapshotAt: before.snapshotAt };
}

async function readRow(
  tx: PoolClient,
  deps: ReaderDeps,
  intentId: string,
): Promise<{ rows: readonly IntentRow[]; total: number; snapshotAt: string }> {
  const { shape } = deps;
  const id = idSql(shape);
  const nowMicros = await snapshotMicros(tx);
  const found = await tx.query<RawRow>(
    `select ${selectList(shape)}
  from (select ${columnList(shape)}
          from ${shape.relation} as ${shape.alias}
         where ${id.sql} = $1::${id.type}
         limit 2) as ${shape.alias}`,
    [intentId],
  );
  const { rows, snapshotAt } = convertPage(found.rows, rowContext(deps, nowMicros));
  return { rows, total: found.rows.length, snapshotAt };
}

/** What keeps the row from being the one that was decided on; `null`: it still is. */
function differenceOf(rows: readonly IntentRow[], write: CasWrite): string | null {
  const row = rows[0];
  if (row === undefined) return "the row is gone, or can no longer be read";
  if (row.state !== write.expectState) return `the row is in ${row.state} now`;
  if (write.expectRowHash !== undefined && row.rowHash !== write.expectRowHash) {
    return "the row differs from the one that was decided on";
  }
  if (write.expectUpdatedAt === undefined) return null;
  const same =
    typeof write.expectUpdatedAt === "string"
      ? row.updatedAt === write.expectUpdatedAt
      : new Date(row.updatedAt).getTime() === write.expectUpdatedAt.getTime();
  return same ? null : `the row was changed at ${row.updatedAt}`;
}

function updateStatement(
  shape: LocalShape,
  write: CasWrite,
  rawState: string,
): { readonly text: string; readonly values: unknown[] } {
  const { writes, spelling } = shape;
  const id = idSql(shape);
  const values: unknown[] = [write.intentId, rawState];
  const sets: string[] = [];
  const assign = (column: keyof ShapeWrites, value: unknown): void => {
    const name = writes?.[column];
    if (name === undefined || name === null || value === undefined) return;
    const quoted = pg.escapeIdentifier(name);
    values.push(value);
    const parameter = `$${String(values.length)}`;
    // What the row already says about its fingerprint stays.
    sets.push(
      column === "fingerprint"
        ? `${quoted} = coalesce(${quoted}, ${parameter})`
        : `${quoted} = ${parameter}`,
    );
  };
  const { set } = write;
  assign("state", spelling[set.state]);
  assign("chargeId", set.chargeId);
  assign("response", set.response === undefined ? undefined : JSON.stringify(set.response));
  assign("fingerprint", set.fingerprint);
  const touched = touchSql(shape);
  if (touched !== null) sets.push(touched);
  const text = `update ${shape.relation} as ${shape.alias}
   set ${sets.join(",\n       ")}
 where ${id.sql} = $1::${id.type}
   and (${shape.fields.state?.sql ?? "null"}\n)::text = $2::text`;
  return { text, values };
}

/** The time of change, so that the team's own readers see the write too. */
function touchSql(shape: LocalShape): string | null {
  const name = shape.writes?.updatedAt ?? null;
  const column = shape.columns.find((candidate) => candidate.name === name);
  if (column === undefined) return null;
  const quoted = pg.escapeIdentifier(column.name);
  if (!column.type.includes("without time zone")) return `${quoted} = clock_timestamp()`;
  // Without a zone the wall time would be a guess, so the column is left alone.
  return shape.zone === null ? null : `${quoted} = clock_timestamp() at time zone ${shape.zone}`;
}

const LOST = new Set(["40001", "40P01", "57014", "55P03"]);
// Rights, read-only servers, views that cannot be written, constraints and triggers of the team.
const REFUSED = /^(?:42501|25006|55000|0A000|428C9|22|23|42|P0)/;

function resultOfError(error: unknown): CasResult | null {
  const state = sqlState(error) ?? "";
  if (!(error instanceof Error)) return null;
  if (LOST.has(state)) return { outcome: "lost_race", reason: error.message };
  return REFUSED.test(state) ? { outcome: "refused", reason: error.message } : null;
}
