import type { Clock } from "../core/clock.ts";
import { addMs } from "../core/clock.ts";
import type { Db } from "./pool.ts";

/** Counts reads in memory and writes the sums now and then. */
export interface ReadCounter {
  readonly count: (scope: string, endpoint: string) => void;
  /** Adds what was counted to `tallyd.read_count`; on failure nothing is lost but the time. */
  readonly flush: () => Promise<void>;
}

/** The reads of one scope over the last 30 days, and how many Stripe allows. */
export interface MonthlyReads {
  readonly scope: string;
  readonly used: bigint;
  readonly allowed: bigint;
}

const MS_PER_DAY = 86_400_000;
/** Stripe's read allocation counts a rolling window of 30 days (Stripe's documentation). */
export const BUDGET_DAYS = 30;
// Stripe: "500 reads per transaction", and at least this many a month however small the account.
const READS_PER_TRANSACTION = 500n;
const READS_FLOOR = 10_000n;
// Beyond this the budget is 50 million reads, which no beat of ours can use; counting on is waste.
const TRANSACTIONS_COUNTED_MAX = 100_000;

/** A counter that buffers until `flush`; any number of replicas add to the same rows. */
export function createReadCounter(db: Db, clock: Clock): ReadCounter {
  let buffered = new Map<string, number>();
  const add = (key: string, reads: number): void => {
    buffered.set(key, (buffered.get(key) ?? 0) + reads);
  };
  return {
    count: (scope, endpoint) => {
      const day = clock.now().toISOString().slice(0, "2026-01-01".length);
      add(JSON.stringify([day, scope, endpoint]), 1);
    },
    flush: async () => {
      const taken = buffered;
      buffered = new Map();
      if (taken.size === 0) return;
      try {
        await addReads(db, taken);
      } catch (error) {
        for (const [key, reads] of taken) add(key, reads);
        throw error;
      }
    },
  };
}

async function addReads(db: Db, reads: ReadonlyMap<string, number>): Promise<void> {
  // Sorted, so that two replicas take the rows in one order and cannot deadlock.
  const rows = [...reads.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
  const keys = rows.map(([key]) => JSON.parse(key) as [string, string, string]);
  await db.query(
    `insert into tallyd.read_count as c (day, scope, endpoint, reads)
     select n.day, n.scope, n.endpoint, n.reads
       from unnest($1::date[], $2::text[], $3::text[], $4::bigint[])
              as n (day, scope, endpoint, reads)
     on conflict (day, scope, endpoint) do update
       set reads = c.reads + excluded.reads`,
    [
      keys.map(([day]) => day),
      keys.map(([, scope]) => scope),
      keys.map(([, , endpoint]) => endpoint),
      rows.map(([, count]) => count),
    ],
  );
}

/**
 * Reads used and allowed in the 30 days before `now`, for each scope that was read or is named in
 * `scopes`. Platform and connected accounts count apart. Transactions are the succeeded charges
 * that the mirror knows, so a fresh mirror shows the floor.
 */
export async function monthlyReads(
  db: Db,
  input: { readonly now: Date; readonly scopes?: readonly string[] },
): Promise<MonthlyReads[]> {
  const since = addMs(input.now, -BUDGET_DAYS * MS_PER_DAY);
  const found = await db.query<{ scope: string; used: string; transactions: bigint }>(
    `with used as (
       select scope, sum(reads) as reads
         from tallyd.read_count
        where day > ($1::timestamptz at time zone 'UTC')::date
          -- Endpoints of chains have budgets of their own, which their vendors know.
          and scope not like 'eip155:%'
        group by scope
     ),
     named as (
       select scope from used
       union
       select unnest($2::text[])
     )
     select n.scope,
            coalesce(u.reads, 0)::text as used,
            (select count(*)
               from (select 1
                       from tallyd.charge c
                      where c.scope = n.scope
                        and c.created_at > $1
                        and c.status = 'succeeded'
                      limit $3) as counted) as transactions
       from named n
       left join used u on u.scope = n.scope
      order by n.scope`,
    [since, input.scopes ?? [], TRANSACTIONS_COUNTED_MAX],
  );
  return found.rows.map((row) => {
    const earned = row.transactions * READS_PER_TRANSACTION;
    return {
      scope: row.scope,
      used: BigInt(row.used),
      allowed: earned > READS_FLOOR ? earned : READS_FLOOR,
    };
  });
}
