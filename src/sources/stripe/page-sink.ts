import type { StripeObject } from "./stripe-object.ts";

/** Whole Unix seconds, half-open: `from` is included, `to` is not. */
export interface SecondRange {
  readonly from: number;
  readonly to: number;
}

/** One page or some consecutive ones, on their way to the store. */
export interface Batch {
  readonly objects: readonly StripeObject[];
  readonly pages: number;
  /** When the read of the first of these pages began, in Stripe's clock. */
  readonly readAt: Date;
  /** What is completely read once this is stored; `null`: nothing new. */
  readonly closed: SecondRange | null;
  /** The oldest `created` seen so far in this window. */
  readonly reached: number;
}

/** Takes pages as they come and stores them in order, while more are being fetched. */
export interface PageSink {
  /** Takes a page; waits only when the store has fallen behind. Throws what the store threw. */
  readonly put: (batch: Batch) => Promise<void>;
  /** Resolves when all is stored. Throws what the store threw. */
  readonly end: () => Promise<void>;
}

// Pages in one transaction: when Stripe is the slow side it is one, when the store is, up to a
// thousand objects share the cost of a transaction and no more than that is ever in memory.
const PAGES_WAITING_MAX = 10;

/** A sink in front of `store`, which is never called twice at once. */
export function createPageSink(store: (batch: Batch) => Promise<void>): PageSink {
  const waiting: Batch[] = [];
  let draining = false;
  let latest: Promise<void> = Promise.resolve();

  const drain = async (): Promise<void> => {
    try {
      for (let batch = waiting.pop(); batch !== undefined; batch = waiting.pop()) {
        await store(batch);
      }
    } finally {
      // In the same breath as the last look at `waiting`: no page can come in between.
      draining = false;
    }
  };

  return {
    put: async (batch) => {
      // Ends here after a failure: nothing is stored past what could not be.
      if (!draining) await latest;
      const before = waiting.pop();
      waiting.push(before === undefined ? batch : joined(before, batch));
      if (!draining) {
        draining = true;
        latest = drain();
        // The next `put` or `end` throws it; until then it must not count as unhandled.
        latest.catch(() => undefined);
      }
      if ((waiting[0]?.pages ?? 0) >= PAGES_WAITING_MAX) await latest;
    },
    end: () => latest,
  };
}

/** Windows run from new to old, so what closes later lies right below. */
function joined(newer: Batch, older: Batch): Batch {
  const ranges = [newer.closed, older.closed].filter((range) => range !== null);
  return {
    objects: [...newer.objects, ...older.objects],
    pages: newer.pages + older.pages,
    // The earlier time: a fact must not look fresher than it is.
    readAt: newer.readAt < older.readAt ? newer.readAt : older.readAt,
    closed:
      ranges.length === 0
        ? null
        : {
            from: Math.min(...ranges.map((range) => range.from)),
            to: Math.max(...ranges.map((range) => range.to)),
          },
    reached: older.reached,
  };
}
