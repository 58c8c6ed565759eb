/**
 * The only writer of `tallyd.evm_transfer`, `evm_authorization` and `evm_transaction`. Charges and
 * refunds on chain follow from the transfers: src/store/evm-charges.ts.
 */
import { ANSWER_KEYS, NO_KEYS, keysOf } from "./evm-keys.ts";
import type { KeysRow, TransferKeys } from "./evm-keys.ts";
import { plainArray } from "./plain-array.ts";
import type { Db } from "./pool.ts";

/** A transfer in its block. */
export interface StoredTransfer {
  readonly txHash: string;
  readonly logIndex: number;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly token: string;
  readonly sender: string;
  readonly recipient: string;
  readonly value: bigint;
  readonly nonce: string | null;
  readonly memo: string | null;
  readonly role: "charge" | "refund" | "other_token" | "none";
}

/** An authorization's end in its block. */
export interface StoredAuthorization {
  readonly txHash: string;
  readonly logIndex: number;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly token: string;
  readonly authorizer: string;
  readonly nonce: string;
  readonly outcome: "used" | "canceled";
}

/** What is stored at once. */
interface Batch {
  readonly scope: string;
  /** When each of the blocks was made. */
  readonly blockTimes: ReadonlyMap<number, Date>;
  readonly final: boolean;
}

/** The columns that say where rows lie: hash, index, block, its hash, its time. */
function places(
  rows: readonly (StoredTransfer | StoredAuthorization)[],
  blockTimes: ReadonlyMap<number, Date>,
): string[] {
  const times = new Map([...blockTimes].map(([block, time]) => [block, time.toISOString()]));
  const timeOf = (block: number): string => {
    const time = times.get(block);
    if (time === undefined) throw new Error(`block ${String(block)} has no time`);
    return time;
  };
  return [
    plainArray(rows.map((row) => row.txHash)),
    plainArray(rows.map((row) => row.logIndex)),
    plainArray(rows.map((row) => row.blockNumber)),
    plainArray(rows.map((row) => row.blockHash)),
    plainArray(rows.map((row) => timeOf(row.blockNumber))),
  ];
}

/**
 * Stores transfers; answers those that are new or changed. `final` never becomes untrue again, and
 * a
 * role that a look has given (a nonce of ours) is not taken back.
 */
export async function saveTransfers(
  tx: Db,
  input: Batch & { readonly transfers: readonly StoredTransfer[] },
): Promise<TransferKeys> {
  const { scope, transfers, final } = input;
  if (transfers.length === 0) return NO_KEYS;
  const done = await tx.query<KeysRow>(
    `with done as (
       insert into tallyd.evm_transfer as t (scope, tx_hash, log_index, block_number, block_hash, block_time,
         token, sender, recipient, value, nonce, memo, role, final)
       select $1, r.tx_hash, r.log_index, r.block_number, r.block_hash, r.block_time, r.token, r.sender,
              r.recipient, r.value, r.nonce, r.memo, r.role, $2
         from unnest($3::text[], $4::integer[], $5::bigint[], $6::text[], $7::timestamptz[], $8::text[],
                $9::text[], $10::text[], $11::numeric[], $12::text[], $13::text[], $14::text[])
           as r (tx_hash, log_index, block_number, block_hash, block_time, token, sender, recipient, value,
                nonce, memo, role)
        order by r.tx_hash collate "C", r.log_index
       on conflict (scope, tx_hash, log_index) do update
         set block_number = excluded.block_number,
             block_hash = excluded.block_hash,
             block_time = excluded.block_time,
             token = excluded.token,
             sender = excluded.sender,
             recipient = excluded.recipient,
             value = excluded.value,
             nonce = coalesce(excluded.nonce, t.nonce),
             memo = coalesce(excluded.memo, t.memo),
             role = case when excluded.role = 'none' then t.role else excluded.role end,
             final = t.final or excluded.final,
             gone_at = null
       where t.block_hash <> excluded.block_hash
          or t.gone_at is not null
          or excluded.final and not t.final
          or t.role = 'none' and excluded.role <> 'none'
          or t.nonce is null and excluded.nonce is not null
       returning tx_hash, log_index, role
     )
     ${ANSWER_KEYS}`,
    [
      scope,
      final,
      ...places(transfers, input.blockTimes),
      plainArray(transfers.map((one) => one.token)),
      plainArray(transfers.map((one) => one.sender)),
      plainArray(transfers.map((one) => one.recipient)),
      plainArray(transfers.map((one) => one.value)),
      plainArray(transfers.map((one) => one.nonce)),
      plainArray(transfers.map((one) => one.memo)),
      plainArray(transfers.map((one) => one.role)),
    ],
  );
  return keysOf(done.rows);
}

/** Stores what became of authorizations; the same nonce in another block is the same payment. */
export async function saveAuthorizations(
  tx: Db,
  input: Batch & { readonly authorizations: readonly StoredAuthorization[] },
): Promise<void> {
  const { scope, authorizations, final } = input;
  if (authorizations.length === 0) return;
  await tx.query(
    `insert into tallyd.evm_authorization as a (scope, token, authorizer, nonce, outcome, tx_hash, log_index,
       block_number, block_hash, block_time, final)
     select distinct on (r.token, r.authorizer, r.nonce)
            $1, r.token, r.authorizer, r.nonce, r.outcome, r.tx_hash, r.log_index, r.block_number,
            r.block_hash, r.block_time, $2::boolean
       from unnest($3::text[], $4::integer[], $5::bigint[], $6::text[], $7::timestamptz[], $8::text[],
              $9::text[], $10::text[], $11::text[])
         as r (tx_hash, log_index, block_number, block_hash, block_time, token, authorizer, nonce, outcome)
      order by r.token, r.authorizer, r.nonce, r.block_number desc
     on conflict (scope, token, authorizer, nonce) do update
       set outcome = excluded.outcome,
           tx_hash = excluded.tx_hash,
           log_index = excluded.log_index,
           block_number = excluded.block_number,
           block_hash = excluded.block_hash,
           block_time = excluded.block_time,
           final = excluded.final,
           gone_at = null
     where not a.final
        or excluded.final`,
    [
      scope,
      final,
      ...places(authorizations, input.blockTimes),
      plainArray(authorizations.map((one) => one.token)),
      plainArray(authorizations.map((one) => one.authorizer)),
      plainArray(authorizations.map((one) => one.nonce)),
      plainArray(authorizations.map((one) => one.outcome)),
    ],
  );
}

/**
 * Provisional transfers and authorizations of these blocks that are not among `kept` were taken
 * away by a reorganisation. Answers the transfers. `to` null: everything above `from`. What a final
 * range holds is final once it is stored, so nothing of it has to be named.
 */
export async function markGone(
  tx: Db,
  input: {
    readonly scope: string;
    readonly from: number;
    readonly to: number | null;
    readonly kept: {
      readonly transfers: readonly { readonly txHash: string; readonly logIndex: number }[];
      readonly nonces: readonly string[];
    };
    readonly at: Date;
  },
): Promise<TransferKeys> {
  const { scope, from, to, kept, at } = input;
  const gone = await tx.query<KeysRow>(
    `with done as (
       update tallyd.evm_transfer t
          set gone_at = $6
        where t.scope = $1
          and not t.final
          and t.gone_at is null
          and t.block_number >= $2
          and t.block_number <= coalesce($3, t.block_number)
          and not exists (
                select
                  from unnest($4::text[], $5::integer[]) as k (tx_hash, log_index)
                 where k.tx_hash = t.tx_hash
                   and k.log_index = t.log_index
              )
        returning tx_hash, log_index, role
     )
     ${ANSWER_KEYS}`,
    [
      ...[scope, from, to],
      plainArray(kept.transfers.map((one) => one.txHash)),
      plainArray(kept.transfers.map((one) => one.logIndex)),
      at,
    ],
  );
  await tx.query(
    `update tallyd.evm_authorization a
        set gone_at = $5
      where a.scope = $1
        and not a.final
        and a.gone_at is null
        and a.block_number >= $2
        and a.block_number <= coalesce($3, a.block_number)
        and a.nonce <> all ($4::text[])`,
    [scope, from, to, plainArray(kept.nonces), at],
  );
  return keysOf(gone.rows);
}

/** A transaction that was looked up. */
export interface StoredTransaction {
  readonly scope: string;
  readonly txHash: string;
  readonly status: "succeeded" | "reverted" | "pending" | "unknown";
  readonly blockNumber: number | null;
  readonly blockTime: Date | null;
  readonly final: boolean;
  readonly lookedAt: Date;
}

/** Notes a look at a transaction. */
export async function saveTransaction(db: Db, one: StoredTransaction): Promise<void> {
  await db.query(
    `insert into tallyd.evm_transaction (scope, tx_hash, status, block_number, block_time, final, looked_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (scope, tx_hash) do update
       set status = excluded.status,
           block_number = excluded.block_number,
           block_time = excluded.block_time,
           final = excluded.final,
           looked_at = excluded.looked_at`,
    [one.scope, one.txHash, one.status, one.blockNumber, one.blockTime, one.final, one.lookedAt],
  );
}

/** Nonces of rows of ours among these: a transfer that carries one is ours wherever it goes. */
export async function ourNonces(
  db: Db,
  scope: string,
  nonces: readonly string[],
): Promise<ReadonlySet<string>> {
  if (nonces.length === 0) return new Set();
  const found = await db.query<{ nonce: string }>(
    `select distinct nonce
       from tallyd.intent
      where scope = $1
        and nonce = any ($2::text[])`,
    [scope, plainArray(nonces)],
  );
  return new Set(found.rows.map((row) => row.nonce));
}
