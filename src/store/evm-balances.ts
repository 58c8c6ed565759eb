/** The only writer of `tallyd.evm_balance`. */
import { toBigint } from "./pool.ts";
import type { Db } from "./pool.ts";

/** A balance to compare with what was read. */
export interface BalanceRow {
  readonly token: string;
  readonly address: string;
  readonly baseBlock: number;
  readonly baseBalance: bigint;
  /** `null`: never compared yet. */
  readonly checkedBlock: number | null;
  readonly agrees: boolean;
}

/** The balances of a chain. */
export async function listBalances(db: Db, scope: string): Promise<BalanceRow[]> {
  const found = await db.query<{
    token: string;
    address: string;
    base_block: bigint;
    base_balance: string;
    checked_block: bigint | null;
    agrees: boolean;
  }>(
    `select token, address, base_block, base_balance, checked_block,
            actual is not distinct from expected as agrees
       from tallyd.evm_balance
      where scope = $1
      order by token, address`,
    [scope],
  );
  return found.rows.map((row) => ({
    token: row.token,
    address: row.address,
    baseBlock: Number(row.base_block),
    baseBalance: toBigint(row.base_balance),
    checkedBlock: row.checked_block === null ? null : Number(row.checked_block),
    agrees: row.agrees,
  }));
}

/** Notes where a balance is counted from; the first time counts. */
export async function saveBase(
  db: Db,
  base: {
    readonly scope: string;
    readonly token: string;
    readonly address: string;
    readonly block: number;
    readonly balance: bigint;
  },
): Promise<void> {
  await db.query(
    `insert into tallyd.evm_balance (scope, token, address, base_block, base_balance)
     values ($1, $2, $3, $4, $5)
     on conflict do nothing`,
    [base.scope, base.token, base.address, base.block, String(base.balance)],
  );
}

/** Notes a comparison. */
export async function saveBalance(
  db: Db,
  seen: {
    readonly scope: string;
    readonly token: string;
    readonly address: string;
    readonly block: number;
    readonly expected: bigint;
    readonly actual: bigint;
    readonly at: Date;
  },
): Promise<void> {
  await db.query(
    `update tallyd.evm_balance
        set checked_block = $4,
            checked_at = $7,
            expected = $5,
            actual = $6
      where scope = $1
        and token = $2
        and address = $3`,
    [
      seen.scope,
      seen.token,
      seen.address,
      seen.block,
      String(seen.expected),
      String(seen.actual),
      seen.at,
    ],
  );
}

/** Forgets balances of addresses or tokens that are configured no more. */
export async function dropBalances(
  db: Db,
  input: {
    readonly scope: string;
    readonly keep: readonly { readonly token: string; readonly address: string }[];
  },
): Promise<void> {
  await db.query(
    `delete from tallyd.evm_balance b
      where b.scope = $1
        and not exists (
              select
                from unnest($2::text[], $3::text[]) as k (token, address)
               where k.token = b.token
                 and k.address = b.address
            )`,
    [input.scope, input.keep.map((one) => one.token), input.keep.map((one) => one.address)],
  );
}

/** What came in and went out of an address by final transfers in (after, to]. */
export async function movedBetween(
  db: Db,
  input: {
    readonly scope: string;
    readonly token: string;
    readonly address: string;
    readonly after: number;
    readonly to: number;
  },
): Promise<bigint> {
  const found = await db.query<{ moved: string }>(
    `select coalesce(sum(case when t.recipient = $3 then t.value else 0 end)
                   - sum(case when t.sender = $3 then t.value else 0 end), 0) as moved
       from tallyd.evm_transfer t
      where t.scope = $1
        and t.token = $2
        and $3 in (t.sender, t.recipient)
        and t.block_number > $4
        and t.block_number <= $5
        and t.final
        and t.gone_at is null`,
    [input.scope, input.token, input.address, input.after, input.to],
  );
  return toBigint(found.rows[0]?.moved ?? "0");
}
