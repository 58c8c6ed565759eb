import { invariant } from "../core/errors.ts";
import type { Db } from "./pool.ts";

/** The database's clock: ages must not mix two clocks (case B45). */
export async function databaseNow(db: Db): Promise<Date> {
  const found = await db.query<{ at: Date }>("select clock_timestamp() as at");
  const at = found.rows[0]?.at;
  invariant(at !== undefined, "the database told no time");
  return at;
}
