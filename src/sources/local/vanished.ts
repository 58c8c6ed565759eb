import type { Pool } from "pg";

import { listIntentIds, markVanished } from "../../store/intents.ts";
import { withTx } from "../../store/tx.ts";
import { READ_ONLY_SNAPSHOT, snapshotMicros } from "./read-rows.ts";
import type { ReaderDeps } from "./read-rows.ts";
import { idSql, possibleIds } from "./row-sql.ts";
import { reading } from "./team-errors.ts";
import { isoOfMicros } from "./time-sql.ts";

// One array parameter of this size is a few hundred kilobytes, and one index scan each.
const IDS_PER_ASK = 5_000;
// Bound of the loop: five thousand million rows.
const ASKS_MAX = 1_000_000;

/**
 * Asks the team's table for every id that the mirror holds as existing, and marks those that it
 * denies. Each is asked for by its id: an order of keys that differs between two databases cannot
 * make a row look gone.
 */
export async function findVanished(deps: ReaderDeps & { readonly own: Pool }): Promise<string[]> {
  const vanished: string[] = [];
  let afterId: string | null = null;
  for (let ask = 0; ask < ASKS_MAX; ask += 1) {
    const ids: string[] = await listIntentIds(deps.own, { afterId, limit: IDS_PER_ASK });
    if (ids.length === 0) return vanished;
    const { present, at } = await presentIds(deps, ids);
    const gone = ids.filter((id) => !present.has(id));
    vanished.push(...(await withTx(deps.own, (tx) => markVanished(tx, { ids: gone, at }))));
    afterId = ids.at(-1) ?? null;
  }
  return vanished;
}

async function presentIds(
  deps: ReaderDeps,
  ids: readonly string[],
): Promise<{ readonly present: ReadonlySet<string>; readonly at: string }> {
  const { shape, team } = deps;
  const id = idSql(shape);
  return reading(() =>
    withTx(
      team,
      async (tx) => {
        const at = isoOfMicros(await snapshotMicros(tx));
        const found = await tx.query<{ id: string }>(
          `select ${id.sql}::text as id
  from ${shape.relation} as ${shape.alias}
 where ${id.sql} = any($1::${id.type}[])`,
          [possibleIds(shape, ids)],
        );
        return { present: new Set(found.rows.map((row) => row.id)), at };
      },
      READ_ONLY_SNAPSHOT,
    ),
  );
}
