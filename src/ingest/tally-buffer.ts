/**
 * Counts what the webhook route refuses, and writes the counts at most once a second: a flood of
 * bad requests must not become a flood of writes. A crash loses the counts of one second.
 */
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { RECENT_MAX, addTallies, endStreaks } from "../store/tallies.ts";
import type { TallyCount, TallyName } from "../store/tallies.ts";
import type { Db } from "../store/pool.ts";

// Counts are for people and detectors that look every few seconds.
const WRITE_AFTER_MS = 1_000;
// Another replica may have counted a streak that this one knows nothing of: so often a success
// ends streaks unasked.
const END_STREAKS_EVERY_MS = 60_000;

// What a request that came through disproves.
const STREAKS: readonly TallyName[] = [
  "signature_missing",
  "signature_malformed",
  "signature_failure",
  "stale_valid",
  "secret_unset",
  "other_mode",
  "foreign_account",
];

interface Count {
  count: number;
  lastAt: Date;
  recent: (string | number)[];
}

/** What a {@link TallyBuffer} needs. */
export interface TallyBufferDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** Owns the counts that are not written yet. */
export class TallyBuffer {
  readonly #deps: TallyBufferDeps;
  #counts = new Map<TallyName, Count>();
  #endStreaks = false;
  #streakSeen = true;
  #streaksEndedMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: TallyBufferDeps) {
    this.#deps = deps;
  }

  /** Counts one thing. */
  count(name: TallyName, recent?: string | number): void {
    const count = this.#counts.get(name) ?? {
      count: 0,
      lastAt: this.#deps.clock.now(),
      recent: [],
    };
    count.count += 1;
    count.lastAt = this.#deps.clock.now();
    if (recent !== undefined) count.recent = [...count.recent, recent].slice(-RECENT_MAX);
    this.#counts.set(name, count);
    if (STREAKS.includes(name)) this.#streakSeen = true;
    this.#arm();
  }

  /** A request came through: streaks that it disproves end, those not yet written included. */
  succeeded(): void {
    const nowMs = this.#deps.clock.now().getTime();
    const overdue = nowMs - this.#streaksEndedMs >= END_STREAKS_EVERY_MS;
    if (!this.#streakSeen && !overdue) return;
    this.#streakSeen = false;
    this.#streaksEndedMs = nowMs;
    this.#endStreaks = true;
    // Written one after the other, so that counts from before the success are ended by it and
    // counts from after it are not.
    void this.flush();
  }

  /** Writes what was counted so far. Never throws: a count is no reason to refuse an event. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const counts = [...this.#counts].map(([name, count]): TallyCount => ({ name, ...count }));
    const ends = this.#endStreaks;
    this.#counts = new Map();
    this.#endStreaks = false;
    const before = this.#writing;
    this.#writing = before.then(() => this.#write(counts, ends));
    await this.#writing;
  }

  async #write(counts: readonly TallyCount[], ends: boolean): Promise<void> {
    try {
      await addTallies(this.#deps.db, counts);
      if (ends) await endStreaks(this.#deps.db, STREAKS);
    } catch (error) {
      // The names stay countable in the log; the numbers of this second are lost.
      this.#deps.log.warn("tallies could not be written", {
        error: String(error),
        tallies: Object.fromEntries(counts.map(({ name, count }) => [name, count])),
      });
      if (ends) this.#streakSeen = true;
    }
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_AFTER_MS).unref();
  }
}
