/**
 * Charges and refunds on chain, made from transfers: the second writer of `tallyd.charge` and
 * `tallyd.refund`, for rows of the rail `evm` alone. A provider's object has versions that are
 * merged (mirror.ts); a transfer is in a block or it is not.
 */
import { markChargesChanged } from "./mirror-changed.ts";
import type { TransferKeys } from "./evm-keys.ts";
import { joinArrays, plainArray } from "./plain-array.ts";
import type { Db } from "./pool.ts";

/** The transfers whose charges are to be brought in line. */
export interface ChargesOf {
  readonly scope: string;
  readonly keys: TransferKeys;
  /** Symbols by the token's address; their lower case is the currency. */
  readonly symbols: ReadonlyMap<string, string>;
  readonly payers: readonly string[];
  readonly now: Date;
}

// Payments between two addresses that a refund may settle: the newest are.
const SETTLED_MAX = 1_000;

// Each by its key: a join may read the whole table where the planner knows nothing of it yet.
const FROM_TRANSFERS = `
  from unnest($2::text[], $3::integer[]) as k (tx_hash, log_index)
 cross join lateral (
         select f.scope, f.tx_hash, f.log_index, f.block_number, f.block_time, f.token, f.sender, f.recipient,
                f.value, f.nonce, f.role, f.final, f.gone_at
           from tallyd.evm_transfer f
          where f.scope = $1
            and f.tx_hash = k.tx_hash
            and f.log_index = k.log_index
          limit 1
       ) t
  left join unnest($4::text[], $5::text[]) as s (token, symbol) on s.token = t.token`;

/** Makes charges and refunds of these transfers say what the transfers say; marks what changed. */
export async function saveChainCharges(tx: Db, input: ChargesOf): Promise<number> {
  const { scope, keys, symbols, payers, now } = input;
  if (keys.count === 0) return 0;
  const common = [
    scope,
    keys.txHashes,
    keys.logIndexes,
    [...symbols.keys()],
    [...symbols.values()].map((symbol) => symbol.toLowerCase()),
  ];
  const made = await tx.query<{ count: number; ids: string }>(
    `with done as (
       insert into tallyd.charge as c (scope, charge_id, rail, payment_intent, amount, amount_captured, currency,
         status, captured, payer, payee, purpose, failure_code, owned, asset, nonce, position, created_at, version_at,
         version_rank, seen_at)
       select t.scope, t.scope || ':' || t.tx_hash || ':' || t.log_index, 'evm', t.tx_hash, t.value, t.value,
              coalesce(s.symbol, t.token),
              case when t.gone_at is not null then 'failed' when t.final then 'succeeded' else 'pending' end,
              true, t.sender, t.recipient,
              case when t.role = 'other_token' then 'other_token' end,
              case when t.gone_at is not null then 'reorganised' end,
              case when t.role = 'charge' and t.sender = any ($6::text[]) then 'yes' else 'unknown' end,
              t.token, t.nonce, t.block_number * 100000 + t.log_index, t.block_time, t.block_time, 1, $7
         ${FROM_TRANSFERS}
        where t.role in ('charge', 'other_token')
        order by t.tx_hash, t.log_index
       on conflict (scope, charge_id) do update
         set amount = excluded.amount,
             amount_captured = excluded.amount_captured,
             currency = excluded.currency,
             status = excluded.status,
             payer = excluded.payer,
             payee = excluded.payee,
             purpose = excluded.purpose,
             failure_code = excluded.failure_code,
             owned = excluded.owned,
             asset = excluded.asset,
             nonce = excluded.nonce,
             position = excluded.position,
             created_at = excluded.created_at,
             version_at = excluded.version_at,
             seen_at = excluded.seen_at
       where (c.status, c.amount, c.currency, c.payer, c.payee, c.purpose, c.owned, c.nonce, c.position,
              c.created_at)
             is distinct from (excluded.status, excluded.amount, excluded.currency, excluded.payer,
                               excluded.payee, excluded.purpose, excluded.owned, excluded.nonce,
                               excluded.position, excluded.created_at)
       returning charge_id
     )
     select count(*)::integer as count, coalesce(array_agg(charge_id), '{}')::text as ids
       from done`,
    [...common, payers, now],
  );
  const [charges] = made.rows;
  const settled = keys.refunds === 0 ? [] : await saveRefunds(tx, common, now);
  const ids = joinArrays(charges?.ids ?? "{}", plainArray(settled));
  await markChargesChanged(tx, { scope, ids, now });
  return charges?.count ?? 0;
}

/** Stores refunds; answers the payments between the same two addresses, which match looks at. */
async function saveRefunds(tx: Db, common: readonly unknown[], now: Date): Promise<string[]> {
  const settled = await tx.query<{ charge_id: string }>(
    `with back as (
       insert into tallyd.refund as r (scope, refund_id, amount, currency, status, created_at, version_at,
         version_rank, seen_at)
       select t.scope, t.scope || ':' || t.tx_hash || ':' || t.log_index, t.value, coalesce(s.symbol, t.token),
              case when t.gone_at is not null then 'failed' when t.final then 'succeeded' else 'pending' end,
              t.block_time, t.block_time, 1, $6
         ${FROM_TRANSFERS}
        where t.role = 'refund'
        order by t.tx_hash, t.log_index
       on conflict (scope, refund_id) do update
         set amount = excluded.amount,
             status = excluded.status,
             created_at = excluded.created_at,
             version_at = excluded.version_at,
             seen_at = excluded.seen_at
       where (r.status, r.amount, r.created_at) is distinct from
             (excluded.status, excluded.amount, excluded.created_at)
       returning refund_id
     ), pairs as (
       select distinct t.token, t.sender, t.recipient
         from back b
         join tallyd.evm_transfer t
           on t.scope = $1
          and t.tx_hash = split_part(b.refund_id, ':', 3)
          and t.log_index::text = split_part(b.refund_id, ':', 4)
     )
     select p.scope || ':' || p.tx_hash || ':' || p.log_index as charge_id
       from pairs
      cross join lateral (
              select t.scope, t.tx_hash, t.log_index
                from tallyd.evm_transfer t
               where t.scope = $1
                 and t.token = pairs.token
                 and t.sender = pairs.recipient
                 and t.recipient = pairs.sender
                 and t.role = 'charge'
               order by t.block_time desc
               limit $7
            ) p`,
    [...common, now, SETTLED_MAX],
  );
  return settled.rows.map((row) => row.charge_id);
}
