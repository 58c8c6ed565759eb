/**
 * Group commit: events that arrive together are stored by one INSERT, and each caller waits until
 * its own event is durable. While the database is busy the next batch gathers by itself, so the
 * busier it gets, the fewer commits there are.
 */
import { UnreadableError } from "../core/errors.ts";
import { eventKey } from "../store/inbox.ts";
import type { InboxEvent } from "../store/inbox.ts";
import { isOutOfReach } from "../store/out-of-reach.ts";

// One INSERT of 500 small rows is some milliseconds; larger batches only make the last one wait.
const BATCH_MAX = 500;
// Events wait for company at most so long while another commit is under way.
const WAIT_MAX_MS = 5;
// Enough to keep the database's log writer busy, few enough to leave connections for the rest.
const COMMITS_MAX = 4;
// Ten full batches. What comes on top is told to come again: Stripe retries for three days.
const QUEUE_MAX = 5_000;
// Stripe does not say how long it waits for an answer; a delivery that is not stored by then is
// better answered with 503 than left hanging.
const COMMIT_WAIT_MAX_MS = 8_000;

/** How one event was stored. */
export type Stored = "new" | "duplicate";

interface Waiting {
  readonly event: InboxEvent;
  readonly resolve: (stored: Stored) => void;
  readonly reject: (error: unknown) => void;
}

/** Stores a batch durably and returns the keys of the new ones. */
export type InsertBatch = (events: readonly InboxEvent[]) => Promise<ReadonlySet<string>>;

/** Owns the queue of events that are not durable yet. */
export class GroupCommit {
  readonly #insert: InsertBatch;
  #queue: Waiting[] = [];
  #commits = 0;
  #timer: NodeJS.Timeout | null = null;
  #scheduled = false;

  constructor(insert: InsertBatch) {
    this.#insert = insert;
  }

  /**
   * Resolves once the event is committed. Throws `UnreadableError` (`database`) when the queue is
   * full or the commit takes too long, and whatever the INSERT threw.
   */
  store(event: InboxEvent): Promise<Stored> {
    if (this.#queue.length >= QUEUE_MAX) {
      return Promise.reject(
        new UnreadableError(
          "database",
          `${String(QUEUE_MAX)} events wait to be stored already: the database does not keep up`,
        ),
      );
    }
    return new Promise<Stored>((resolve, reject) => {
      this.#queue.push({ event, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#commits === 0 || this.#queue.length >= BATCH_MAX) {
      if (this.#scheduled || this.#commits >= COMMITS_MAX) return;
      this.#scheduled = true;
      // After the current turn of the event loop: requests that arrived in it come along.
      setImmediate(() => {
        this.#scheduled = false;
        this.#commit();
      });
      return;
    }
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#commit();
    }, WAIT_MAX_MS);
  }

  #commit(): void {
    if (this.#queue.length === 0 || this.#commits >= COMMITS_MAX) return;
    const batch = this.#queue.slice(0, BATCH_MAX);
    this.#queue = this.#queue.slice(BATCH_MAX);
    this.#commits += 1;
    void this.#store(batch).finally(() => {
      this.#commits -= 1;
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  async #store(batch: readonly Waiting[]): Promise<void> {
    const late = setTimeout(() => {
      // The INSERT may still succeed; the event then comes again and is a duplicate.
      const error = new UnreadableError(
        "database",
        `the database took longer than ${String(COMMIT_WAIT_MAX_MS)} ms to store an event`,
      );
      for (const waiting of batch) waiting.reject(error);
    }, COMMIT_WAIT_MAX_MS);
    try {
      await this.#insertBatch(batch);
    } finally {
      clearTimeout(late);
    }
  }

  /** Never throws: each waiting caller is told. */
  async #insertBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const fresh = await this.#insert(batch.map((waiting) => waiting.event));
      const told = new Set<string>();
      for (const waiting of batch) {
        const key = eventKey(waiting.event);
        // Of equal events in one batch the first is the new one.
        waiting.resolve(fresh.has(key) && !told.has(key) ? "new" : "duplicate");
        told.add(key);
      }
    } catch (error) {
      if (batch.length === 1 || isOutOfReach(error)) {
        for (const waiting of batch) waiting.reject(error);
        return;
      }
      // One event that the database refuses must not take the others with it.
      for (const waiting of batch) await this.#insertBatch([waiting]);
    }
  }
}
