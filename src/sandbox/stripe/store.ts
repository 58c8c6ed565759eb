import type { RecordBase } from "./records.ts";

/** One stored object; the record is replaced when the object changes. */
export interface Entry<T> {
  record: T;
  readonly sequence: number;
  readonly created: number;
  /** Sandbox time (ms) of arrival and of the last change: search reads an index that lags. */
  readonly arrivedAt: number;
  changedAt: number;
  /** The record before the last change. */
  previous: T | undefined;
}

/**
 * Entries by (created, order of arrival). Appending in time order is free; anything else is sorted
 * once at the next read, so bulk loading stays linear.
 */
export class SortedList<T> {
  #entries: Entry<T>[] = [];
  #sorted = true;

  add(entry: Entry<T>): void {
    const last = this.#entries.at(-1);
    if (last !== undefined && last.created > entry.created) this.#sorted = false;
    this.#entries.push(entry);
  }

  remove(entry: Entry<T>): void {
    this.#entries = this.#entries.filter((other) => other !== entry);
  }

  /** Oldest first. */
  entries(): readonly Entry<T>[] {
    if (!this.#sorted) {
      this.#entries.sort((a, b) => a.created - b.created || a.sequence - b.sequence);
      this.#sorted = true;
    }
    return this.#entries;
  }

  /** The first position whose (created, sequence) is not before the given one. */
  position(created: number, sequence: number): number {
    const entries = this.entries();
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = entries[middle];
      if (entry === undefined) break;
      const before =
        entry.created < created || (entry.created === created && entry.sequence < sequence);
      if (before) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Reads the value an object is indexed by, or null. */
export type IndexReader<T> = (record: T) => string | null;

/** The objects of one kind in one name space, ordered by creation, with look-ups by field. */
export class RecordStore<T extends RecordBase> {
  readonly all = new SortedList<T>();
  readonly #byId = new Map<string, Entry<T>>();
  readonly #readers: Readonly<Record<string, IndexReader<T>>>;
  readonly #indexes = new Map<string, Map<string, SortedList<T>>>();
  #sequence = 0;

  constructor(readers: Readonly<Record<string, IndexReader<T>>> = {}) {
    this.#readers = readers;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): T | undefined {
    return this.#byId.get(id)?.record;
  }

  entry(id: string): Entry<T> | undefined {
    return this.#byId.get(id);
  }

  /** The objects whose indexed field has this value. */
  by(field: string, value: string): SortedList<T> {
    return this.#indexes.get(field)?.get(value) ?? new SortedList<T>();
  }

  /** The records of an index, oldest first. */
  records(field: string, value: string): readonly T[] {
    return this.by(field, value)
      .entries()
      .map((entry) => entry.record);
  }

  /** Adds or replaces the object with this id. `now` is sandbox time in ms. */
  put(record: T, now: number): T {
    const existing = this.#byId.get(record.id);
    if (existing === undefined) {
      this.#sequence += 1;
      const entry: Entry<T> = {
        record,
        sequence: this.#sequence,
        created: record.created,
        arrivedAt: now,
        changedAt: now,
        previous: undefined,
      };
      this.#byId.set(record.id, entry);
      this.all.add(entry);
      for (const field of Object.keys(this.#readers)) this.#link(field, entry);
    } else {
      this.#replace(existing, record, now);
    }
    return record;
  }

  /** Forgets an object; false when there was none. */
  delete(id: string): boolean {
    const entry = this.#byId.get(id);
    if (entry === undefined) return false;
    for (const field of Object.keys(this.#readers)) this.#unlink(field, entry);
    this.all.remove(entry);
    return this.#byId.delete(id);
  }

  #replace(entry: Entry<T>, record: T, now: number): void {
    const moved = Object.entries(this.#readers)
      .filter(([, read]) => read(entry.record) !== read(record))
      .map(([field]) => field);
    for (const field of moved) this.#unlink(field, entry);
    entry.previous = entry.record;
    entry.changedAt = now;
    entry.record = record;
    for (const field of moved) this.#link(field, entry);
  }

  #link(field: string, entry: Entry<T>): void {
    const value = this.#readers[field]?.(entry.record) ?? null;
    if (value === null) return;
    const index = this.#indexes.get(field) ?? new Map<string, SortedList<T>>();
    this.#indexes.set(field, index);
    const list = index.get(value) ?? new SortedList<T>();
    list.add(entry);
    index.set(value, list);
  }

  #unlink(field: string, entry: Entry<T>): void {
    const value = this.#readers[field]?.(entry.record) ?? null;
    if (value !== null) this.#indexes.get(field)?.get(value)?.remove(entry);
  }
}
