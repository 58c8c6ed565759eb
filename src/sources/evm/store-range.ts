/** Stores what was read of a chain, in one transaction with the cursor (invariant 10). */
import type { Pool } from "pg";

import type { ChainSettings } from "../../core/settings.ts";
import { saveChainCharges } from "../../store/evm-charges.ts";
import { saveHead, saveRead } from "../../store/evm-chain.ts";
import type { BlockRef } from "../../store/evm-chain.ts";
import { joinKeys } from "../../store/evm-keys.ts";
import type { TransferKeys } from "../../store/evm-keys.ts";
import { markGone, ourNonces, saveAuthorizations, saveTransfers } from "../../store/evm-logs.ts";
import type { Db } from "../../store/pool.ts";
import { saveProgress } from "../../store/sources.ts";
import { withTx } from "../../store/tx.ts";
import { parseLogs } from "./parse-logs.ts";
import type { ParsedLogs } from "./parse-logs.ts";
import { AUTHORIZATION_USED } from "./topics.ts";
import type { Header, RawLog } from "./wire.ts";

/** The source of a chain's logs; its scope is the chain. */
export const LOGS_SOURCE = "evm.logs";

/** Logs with the heads of their blocks. */
export interface PlacedLogs {
  readonly logs: readonly RawLog[];
  readonly headers: ReadonlyMap<number, Header>;
}

/** What storing changed. */
export interface StoredCounts {
  readonly logs: number;
  readonly charges: number;
  /** Provisional transfers that a reorganisation took away. */
  readonly gone: number;
}

/** A final range that was read completely. */
export interface FinalRange extends PlacedLogs {
  readonly from: number;
  readonly last: Header;
  /** When the block before `from` was made, or `from` itself where nothing was read before. */
  readonly since: Date;
  /** The cursor moves to `last`; false: the range lies below what was read. */
  readonly advances: boolean;
}

/** Stores a final range and moves cursor and coverage. */
export async function storeFinal(
  pool: Pool,
  chain: ChainSettings,
  range: FinalRange,
  now: Date,
): Promise<StoredCounts> {
  const scope = chain.chainId;
  return withTx(pool, async (tx) => {
    const placed = await storeLogs(tx, chain, { ...range, final: true });
    const gone = await markGone(tx, {
      scope,
      from: range.from,
      to: range.last.number,
      kept: { transfers: [], nonces: [] },
      at: now,
    });
    const charges = await saveCharges(tx, chain, joinKeys(placed.changed, gone), now);
    const { number, hash, time } = range.last;
    await saveRead(tx, {
      scope,
      fromBlock: range.from,
      final: range.advances ? { number, hash, time } : null,
    });
    await saveProgress(tx, {
      source: LOGS_SOURCE,
      scope,
      cursor: null,
      coveredRange: range.since < time ? { from: range.since, to: time } : null,
    });
    return { logs: range.logs.length, charges, gone: gone.count };
  });
}

/** Replaces what was provisional above the final block. */
export async function storeTip(
  pool: Pool,
  chain: ChainSettings,
  tip: PlacedLogs & {
    readonly above: number;
    readonly head: BlockRef;
    readonly reorganised: boolean;
  },
  now: Date,
): Promise<StoredCounts> {
  const scope = chain.chainId;
  return withTx(pool, async (tx) => {
    const placed = await storeLogs(tx, chain, { ...tip, final: false });
    const gone = await markGone(tx, {
      scope,
      from: tip.above + 1,
      to: null,
      kept: {
        transfers: placed.parsed.transfers,
        nonces: placed.parsed.authorizations.map((one) => one.nonce),
      },
      at: now,
    });
    const charges = await saveCharges(tx, chain, joinKeys(placed.changed, gone), now);
    await saveHead(tx, { scope, head: tip.head, reorganised: tip.reorganised, at: now });
    return { logs: tip.logs.length, charges, gone: gone.count };
  });
}

/** Stores logs that a look found; the cursor stays. */
export async function storeFound(
  pool: Pool,
  chain: ChainSettings,
  found: PlacedLogs & { readonly final: boolean },
  now: Date,
): Promise<number> {
  return withTx(pool, async (tx) => {
    const placed = await storeLogs(tx, chain, found);
    return saveCharges(tx, chain, placed.changed, now);
  });
}

interface Stored {
  readonly changed: TransferKeys;
  readonly parsed: ParsedLogs;
}

async function storeLogs(
  tx: Db,
  chain: ChainSettings,
  input: PlacedLogs & { readonly final: boolean },
): Promise<Stored> {
  const scope = chain.chainId;
  const used = input.logs.flatMap((log) =>
    log.topics[0] === AUTHORIZATION_USED ? (log.topics[2] ?? []) : [],
  );
  const ours = await ourNonces(tx, scope, used);
  const parsed = parseLogs(input.logs, chain, { ours });
  const blockTimes = new Map([...input.headers].map(([number, { time }]) => [number, time]));
  const batch = { scope, blockTimes, final: input.final };
  const changed = await saveTransfers(tx, { ...batch, ...parsed });
  await saveAuthorizations(tx, { ...batch, ...parsed });
  return { changed, parsed };
}

function saveCharges(tx: Db, chain: ChainSettings, keys: TransferKeys, now: Date): Promise<number> {
  const tokens = [...chain.tokens, ...chain.otherTokens];
  const symbols = new Map(tokens.map((token) => [token.address, token.symbol]));
  return saveChainCharges(tx, { scope: chain.chainId, keys, symbols, payers: chain.payers, now });
}
