import type { Pool } from "pg";

import type { Settings } from "../../core/settings.ts";
import { withTx } from "../../store/tx.ts";
import { CHECK_MAX_MS, KINDS, findRelation } from "./relation.ts";
import type { LackingRights } from "./shape.ts";
import { reading } from "./team-errors.ts";
import { judgeWrites } from "./writes.ts";

/**
 * The UPDATE rights that the resolver would need on the team's table and the role has not, as the
 * catalogue has them now; `null`: none is lacking. Costs two small queries and reads no row.
 * Throws an UnreadableError when the database is out of reach.
 */
export async function findLackingRights(
  team: Pool,
  intents: Settings["intents"],
): Promise<LackingRights | null> {
  return reading(async () => {
    const relation = await withTx(team, (tx) => findRelation(tx, intents.table), {
      readOnly: true,
      statementTimeoutMs: CHECK_MAX_MS,
    });
    const kind = KINDS[relation?.kind ?? ""];
    // A table that is gone is told by its reader.
    if (relation === null || kind === undefined) return null;
    return judgeWrites({ relation, kind, intents }).lacking;
  });
}
