import { interval } from "../core/interval.ts";
import type { RuleSettings } from "../core/settings.ts";
import { wakeEnded } from "../store/ladder.ts";
import { readNamedSql, runNamed } from "../store/named-sql.ts";
import type { Db } from "../store/pool.ts";

const sql = { schedule: readNamedSql("match/schedule_chain.sql") };

// A chain that is read for the first time has every moment behind it.
const LONG_AGO = new Date(0);

/** The time of a chain that has become completely read. */
export interface ReadTime {
  readonly scope: string;
  /** `null`: nothing was read before. */
  readonly from: Date | null;
  readonly to: Date;
}

/**
 * Makes due what waited for the blocks of this time: verdicts of absence, and rows whose signed
 * authorization ended in it.
 */
export async function scheduleChain(
  db: Db,
  read: ReadTime,
  input: { readonly rules: Pick<RuleSettings, "orphanGraceMs">; readonly now: Date },
): Promise<void> {
  const from = read.from ?? LONG_AGO;
  await runNamed(db, sql.schedule, {
    scope: read.scope,
    from,
    to: read.to,
    now: input.now,
    orphan_grace: interval(input.rules.orphanGraceMs),
  });
  await wakeEnded(db, { ...read, from, now: input.now });
}
