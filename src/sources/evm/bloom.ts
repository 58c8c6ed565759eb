/** The bloom filter in a block's head: what is not in it is certainly in none of its logs. */
import { hexToBytes, keccak256 } from "viem";

import type { LogFilter } from "./topics.ts";

const BLOOM_BYTES = 256;

function holds(bloom: Uint8Array, value: string): boolean {
  const hash = hexToBytes(keccak256(value as `0x${string}`));
  // Three bits, each named by eleven bits of the hash (Ethereum yellow paper, 4.3.1).
  for (const at of [0, 2, 4]) {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047;
    const byte = bloom[BLOOM_BYTES - 1 - (bit >> 3)] ?? 0;
    if ((byte & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}

/** Could the block hold a log that one of the filters takes? A bloom of another size says yes. */
export function mayHold(logsBloom: string, filters: readonly LogFilter[]): boolean {
  const bloom = hexToBytes(logsBloom as `0x${string}`);
  if (bloom.length !== BLOOM_BYTES) return true;
  return filters.some(
    (filter) =>
      filter.address.some((address) => holds(bloom, address)) &&
      filter.topics.every((wanted) => {
        if (wanted === null) return true;
        return (typeof wanted === "string" ? [wanted] : wanted).some((topic) =>
          holds(bloom, topic),
        );
      }),
  );
}
