/**
 * Logs in the order of the chain, each once. In this order a log's neighbour is the one beside it,
 * repetitions lie together, and two readings are compared place by place: no index has to be made.
 */
import { RpcError } from "./rpc-errors.ts";
import type { RawLog } from "./wire.ts";

/** By block and index; versions of one block lie one after the other. */
function compare(a: RawLog, b: RawLog): number {
  if (a.blockNumber !== b.blockNumber) return a.blockNumber - b.blockNumber;
  if (a.blockHash !== b.blockHash) return a.blockHash < b.blockHash ? -1 : 1;
  return a.logIndex - b.logIndex;
}

/** Are these the same log, word for word? */
export function sameLog(a: RawLog, b: RawLog): boolean {
  return (
    a.logIndex === b.logIndex &&
    a.blockNumber === b.blockNumber &&
    a.blockHash === b.blockHash &&
    a.txHash === b.txHash &&
    a.address === b.address &&
    a.data === b.data &&
    a.topics.length === b.topics.length &&
    a.topics.every((topic, place) => topic === b.topics[place])
  );
}

/**
 * The logs in order, repetitions left out. Two different logs at one place of one block are a fault
 * of the node, and nothing of its answer counts (case B36): throws RpcError.
 */
export function inOrder(logs: readonly RawLog[]): readonly RawLog[] {
  if (isOrdered(logs)) return logs;
  const ordered: RawLog[] = [];
  for (const log of logs.toSorted(compare)) {
    const before = ordered.at(-1);
    if (before === undefined || compare(before, log) !== 0) {
      ordered.push(log);
    } else if (!sameLog(before, log)) {
      const place = `index ${String(log.logIndex)} of block ${String(log.blockNumber)}`;
      throw new RpcError("broken", `two logs at ${place}`);
    }
  }
  return ordered;
}

function isOrdered(logs: readonly RawLog[]): boolean {
  let before: RawLog | undefined;
  for (const log of logs) {
    if (before !== undefined && compare(before, log) >= 0) return false;
    before = log;
  }
  return true;
}

/** Do two ordered lists hold the same logs, word for word? */
export function sameLogs(a: readonly RawLog[], b: readonly RawLog[]): boolean {
  if (a.length !== b.length) return false;
  return a.every((log, index) => {
    const other = b[index];
    return other !== undefined && sameLog(log, other);
  });
}

/** Everything a log says, as one key. */
export function contentKey(log: RawLog): string {
  const { blockHash, txHash, logIndex, address, topics, data } = log;
  return [blockHash, txHash, String(logIndex), address, ...topics, data].join(" ");
}
