/**
 * The blocks above finality are read anew at each pass and replace what was provisional: a payment
 * that moved to another block is the same payment, and one that is gone is gone (case B39). Nothing
 * is concluded from them; they say that a payment is on its way.
 */
import type { Pool } from "pg";

import type { Clock } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import type { ChainRow } from "../../store/evm-chain.ts";
import { readHeaders, readRange } from "./read-range.ts";
import { storeTip } from "./store-range.ts";
import type { StoredCounts } from "./store-range.ts";
import type { Usable } from "./survey.ts";
import { RpcError } from "./rpc-errors.ts";
import type { Header } from "./wire.ts";

/** Reads and replaces the tip. Throws RpcError. */
export async function readTip(
  deps: { readonly pool: Pool; readonly clock: Clock },
  work: {
    readonly chain: ChainSettings;
    readonly usable: Usable;
    readonly known: ChainRow;
    readonly final: Header;
    readonly signal: AbortSignal;
  },
): Promise<StoredCounts> {
  const { chain, usable, known, final, signal } = work;
  const { endpoint, head } = usable;
  const from = final.number + 1;
  const reading =
    from > head.number
      ? { last: head, logs: [] }
      : await readRange(endpoint, chain, { from, to: head.number }, { signal });
  if (reading.last.hash !== head.hash) {
    throw new RpcError("lagging", `block ${String(head.number)} changed while it was read`);
  }
  const numbers = new Set(reading.logs.map((log) => log.blockNumber));
  const former = known.head;
  if (former !== null && former.number <= head.number) numbers.add(former.number);
  const headers = await readHeaders(endpoint, [...numbers], signal);
  const moved = reading.logs.find((log) => headers.get(log.blockNumber)?.hash !== log.blockHash);
  if (moved !== undefined) {
    throw new RpcError("lagging", `block ${String(moved.blockNumber)} changed while it was read`);
  }
  const there = former === null ? undefined : headers.get(former.number);
  const reorganised = former !== null && (there === undefined || there.hash !== former.hash);
  const { number, hash, time } = head;
  return storeTip(
    deps.pool,
    chain,
    { logs: reading.logs, headers, above: final.number, head: { number, hash, time }, reorganised },
    deps.clock.now(),
  );
}
