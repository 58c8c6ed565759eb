import type { RowFault } from "../../core/intent.ts";
import { withTx } from "../../store/tx.ts";
import { READ_ONLY_SNAPSHOT } from "./read-rows.ts";
import type { ReaderDeps } from "./read-rows.ts";
import { idSql } from "./row-sql.ts";
import { reading } from "./team-errors.ts";

/** Rows without an id cannot be followed; `null`: there is none, or the column forbids it. */
export async function countWithoutId(deps: ReaderDeps): Promise<RowFault | null> {
  if (deps.shape.fields.intentId?.notNull === true) return null;
  const { shape, team } = deps;
  const total = await reading(() =>
    withTx(
      team,
      async (tx) => {
        const found = await tx.query<{ total: bigint }>(
          `select count(*) as total
  from ${shape.relation} as ${shape.alias}
 where ${idSql(shape).sql} is null`,
        );
        return found.rows[0]?.total ?? 0n;
      },
      READ_ONLY_SNAPSHOT,
    ),
  );
  if (total === 0n) return null;
  const seen = `nothing, in ${String(total)} rows`;
  return { intentId: null, kept: false, faults: [{ field: "intentId", seen, allowed: "a value" }] };
}
