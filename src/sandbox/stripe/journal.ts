/** One request as the sandbox saw it. `status` 0: destroyed without an answer. */
export interface JournalEntry {
  readonly requestId: string;
  /** Sandbox time in ms at arrival. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly idempotencyKey: string | null;
  readonly version: string | null;
  readonly userAgent: string | null;
  status: number;
  replayed: boolean;
  faults: readonly string[];
}

/** Requests kept; older ones are forgotten so that a benchmark does not eat the memory. */
export const JOURNAL_MAX = 20_000;

/** The log of requests and the counts by route. */
export interface Journal {
  readonly entries: () => readonly JournalEntry[];
  readonly counts: () => Readonly<Record<string, number>>;
  readonly add: (entry: JournalEntry) => void;
  readonly count: (route: string) => void;
  readonly clear: () => void;
}

/** An empty log. */
export function createJournal(): Journal {
  let kept: JournalEntry[] = [];
  let counts = new Map<string, number>();
  return {
    // Twice the limit is held before cutting, so that cutting is not paid for at each request.
    entries: () => kept.slice(-JOURNAL_MAX),
    counts: () => Object.fromEntries(counts),
    add: (entry) => {
      kept.push(entry);
      if (kept.length >= 2 * JOURNAL_MAX) kept = kept.slice(-JOURNAL_MAX);
    },
    count: (route) => {
      counts.set(route, (counts.get(route) ?? 0) + 1);
    },
    clear: () => {
      kept = [];
      counts = new Map();
    },
  };
}
