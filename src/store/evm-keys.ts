/** Names of transfers that pass from one statement to the next, thousands at once. */
import { joinArrays } from "./plain-array.ts";

/** Names of transfers, as arrays of PostgreSQL: they go from statement to statement unread. */
export interface TransferKeys {
  readonly count: number;
  /** How many of them are money that went back. */
  readonly refunds: number;
  readonly txHashes: string;
  readonly logIndexes: string;
}

/** No transfers. */
export const NO_KEYS: TransferKeys = { count: 0, refunds: 0, txHashes: "{}", logIndexes: "{}" };

/** As a statement answers them. */
export interface KeysRow {
  readonly count: number;
  readonly refunds: number;
  readonly tx_hashes: string;
  readonly log_indexes: string;
}

/** The keys of the rows that a part of a statement named `done` returns. */
export const ANSWER_KEYS = `select count(*)::integer as count, count(*) filter (where role = 'refund')::integer as refunds,
            coalesce(array_agg(tx_hash), '{}')::text as tx_hashes,
            coalesce(array_agg(log_index), '{}')::text as log_indexes
       from done`;

/** Reads that answer. */
export function keysOf(rows: readonly KeysRow[]): TransferKeys {
  const [row] = rows;
  if (row === undefined) return NO_KEYS;
  const { count, refunds } = row;
  return { count, refunds, txHashes: row.tx_hashes, logIndexes: row.log_indexes };
}

/** Both lists as one. */
export function joinKeys(one: TransferKeys, other: TransferKeys): TransferKeys {
  return {
    count: one.count + other.count,
    refunds: one.refunds + other.refunds,
    txHashes: joinArrays(one.txHashes, other.txHashes),
    logIndexes: joinArrays(one.logIndexes, other.logIndexes),
  };
}
