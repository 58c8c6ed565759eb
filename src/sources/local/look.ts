import type { Pool, PoolClient } from "pg";

import type { IntentRow, RowFault } from "../../core/intent.ts";
import { saveFaults, upsertIntents } from "../../store/intents.ts";
import { withTx } from "../../store/tx.ts";
import type { RawRow } from "./intent-row.ts";
import { READ_ONLY_SNAPSHOT, convertPage, rowContext, snapshotMicros } from "./read-rows.ts";
import type { ReaderDeps } from "./read-rows.ts";
import { columnList, idSql, possibleIds, selectList } from "./row-sql.ts";
import type { LocalShape } from "./shape.ts";
import { isRowError, reading } from "./team-errors.ts";
import { isoOfMicros } from "./time-sql.ts";

/** Marks by which a row may be known. */
export interface LookMarks {
  readonly chargeIds: readonly string[];
  readonly keys: readonly string[];
  readonly intentIds: readonly string[];
  readonly references: readonly string[];
  readonly nonces: readonly string[];
}

/** What stood in the team's table at the moment of the look. */
export interface LocalLook {
  readonly rows: readonly IntentRow[];
  /** Rows that carry a mark and cannot be used: there is a row, whatever it says. */
  readonly faults: readonly RowFault[];
  /** Ids of all rows that carry a mark. */
  readonly ids: readonly string[];
  /** ISO 8601, the team's database's clock. */
  readonly lookedAt: string;
}

// A look is about a handful of operations; a mark that thousands of rows share says nothing.
const LOOK_ROWS_MAX = 5_000;

/**
 * Looks for rows by their marks right now, and stores what it finds: the last step before a verdict
 * that a row is missing (invariant 2).
 */
export async function lookLocal(
  deps: ReaderDeps & { readonly own: Pool },
  marks: LookMarks,
): Promise<LocalLook> {
  const look = await reading(async () => {
    try {
      return await withTx(deps.team, (tx) => lookIn(tx, deps, marks), READ_ONLY_SNAPSHOT);
    } catch (error) {
      if (!isRowError(error) || !(error instanceof Error)) throw error;
      const { message } = error;
      return withTx(
        deps.team,
        (tx) => lookForIds(tx, deps, { marks, reason: message }),
        READ_ONLY_SNAPSHOT,
      );
    }
  });
  await withTx(deps.own, async (tx) => {
    await upsertIntents(tx, { rows: look.rows, snapshotAt: look.lookedAt });
    await saveFaults(tx, { ids: look.ids, faults: look.faults, at: look.lookedAt });
  });
  return look;
}

async function lookIn(tx: PoolClient, deps: ReaderDeps, marks: LookMarks): Promise<LocalLook> {
  const { shape } = deps;
  const nowMicros = await snapshotMicros(tx);
  const { inner, values } = markedRows(shape, marks);
  const found = await tx.query<RawRow>(
    `select ${selectList(shape)}
  from (${inner}) as ${shape.alias}`,
    values,
  );
  const { rows, faults, ids } = convertPage(found.rows, rowContext(deps, nowMicros));
  return { rows, faults, ids, lookedAt: isoOfMicros(nowMicros) };
}

/** Where the expressions fail on a row that carries a mark, its id still proves that it exists. */
async function lookForIds(
  tx: PoolClient,
  deps: ReaderDeps,
  input: { readonly marks: LookMarks; readonly reason: string },
): Promise<LocalLook> {
  const lookedAt = isoOfMicros(await snapshotMicros(tx));
  const { inner, values } = markedRows(deps.shape, input.marks);
  const found = await tx.query<{ id: string | null }>(
    `select ${idSql(deps.shape).sql}::text as id
  from (${inner}) as ${deps.shape.alias}`,
    values,
  );
  const ids = found.rows.flatMap((row) => row.id ?? []);
  const fault = {
    field: "row",
    seen: input.reason,
    allowed: "values that the mapped expressions can read",
  };
  const faults = ids.map((intentId) => ({ intentId, kept: false, faults: [fault] }));
  return { rows: [], faults, ids, lookedAt };
}

function markedRows(
  shape: LocalShape,
  marks: LookMarks,
): { readonly inner: string; readonly values: unknown[] } {
  const values: unknown[] = [LOOK_ROWS_MAX];
  const conditions: string[] = [];
  const among = (sql: string, type: string, wanted: readonly string[]): void => {
    if (wanted.length === 0) return;
    values.push(wanted);
    conditions.push(`${sql} = any($${String(values.length)}::${type}[])`);
  };
  const id = idSql(shape);
  among(id.sql, id.type, possibleIds(shape, marks.intentIds));
  const texts = [
    [shape.fields.chargeId, marks.chargeIds.flatMap(spellings)],
    [shape.fields.idempotencyKey, marks.keys],
    [shape.fields.reference, marks.references],
  ] as const;
  for (const [field, wanted] of texts) {
    if (field !== null) among(`(${field.sql}\n)::text`, "text", [...wanted]);
  }
  if (shape.fields.nonce !== null) {
    // Nonces stand in rows with and without 0x, in any case.
    const wanted = marks.nonces.flatMap((nonce) => [nonce, nonce.replace(/^0x/, "")]);
    among(`lower((${shape.fields.nonce.sql}\n)::text)`, "text", wanted);
  }
  const inner = `select ${columnList(shape)}
          from ${shape.relation} as ${shape.alias}
         where ${conditions.length === 0 ? "false" : conditions.join("\n            or ")}
         limit $1::int`;
  return { inner, values };
}

/** A charge on chain may stand in a row as its hash alone, and in any case. */
function spellings(chargeId: string): string[] {
  const hash = /0x[0-9a-f]{64}/i.exec(chargeId)?.[0];
  if (hash === undefined) return [chargeId];
  return [chargeId, chargeId.toLowerCase(), hash, hash.toLowerCase()];
}
