/** The one writer of `tallyd.spend_charge`, `tallyd.spend_account` and `tallyd.spend_slot`. */
import type { Pool } from "pg";

import { readNamedSql, runNamed } from "./named-sql.ts";
import { withTx } from "./tx.ts";

const sql = {
  count: readNamedSql("spend/count.sql"),
  judged: readNamedSql("spend/judged.sql"),
};

/**
 * Counts what these operations were charged and brings the sums of accounts and days up to it. To
 * be called before they are judged.
 */
export async function countSpend(pool: Pool, operations: readonly string[]): Promise<void> {
  await withTx(pool, async (tx) => {
    // Two counts at once would both move a sum by the same change.
    await tx.query("select pg_advisory_xact_lock(hashtextextended('tallyd:spend', 0))");
    await runNamed(tx, sql.count, { operations });
  });
}

/**
 * Subjects of cap incidents without an operation (accounts, days) that a judging of these
 * operations decides: what they touch, and caps that are configured no more. `parameters` are
 * those of the detectors, `operations`, `spend_caps` and `time_zone` among them.
 */
export async function judgedCaps(
  pool: Pool,
  parameters: Readonly<Record<string, unknown>>,
): Promise<ReadonlySet<string>> {
  const rows = await runNamed<{ subject: string }>(pool, sql.judged, parameters);
  return new Set(rows.map((row) => row.subject));
}
