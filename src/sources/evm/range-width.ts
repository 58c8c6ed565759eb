/**
 * How many blocks to read at once: as many as hold some thousand logs. Memory and transactions
 * follow the logs of one range and not the history, and an empty past goes by in wide steps.
 */

// Where nothing is known: the busiest token's few blocks are still no burden.
const BLOCKS_START = 16;
// One transaction stores one range.
const BLOCKS_MAX = 50_000;
// A megabyte of JSON a reading: nodes and memory suffer more from larger ones, and none is faster.
const LOGS_AIM = 2_000;
// How much denser the next blocks may turn out to be than the ones before.
const GROWTH_MAX = 4;

/** The width of the next range. */
export interface RangeWidth {
  readonly blocks: () => number;
  /** Learns from a range that was read. */
  readonly learn: (read: { readonly blocks: number; readonly logs: number }) => void;
}

/** Begins narrow. */
export function rangeWidth(): RangeWidth {
  let width = BLOCKS_START;
  return {
    blocks: () => width,
    learn: ({ blocks, logs }) => {
      const aimed = logs === 0 ? BLOCKS_MAX : Math.floor((blocks * LOGS_AIM) / logs);
      width = Math.max(1, Math.min(aimed, width * GROWTH_MAX, BLOCKS_MAX));
    },
  };
}
