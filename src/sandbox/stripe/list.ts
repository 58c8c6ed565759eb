import { invalidParam, missing } from "./errors.ts";
import type { Params } from "./form.ts";
import { integer, text } from "./params.ts";
import type { RecordBase } from "./records.ts";
import type { Entry, RecordStore, SortedList } from "./store.ts";

/** Stripe's page sizes. */
const PAGE_DEFAULT = 10;
const PAGE_MAX = 100;

/** Names that every list takes. */
export const LIST_PARAMS = ["limit", "starting_after", "ending_before", "created"] as const;

/** One page, newest first. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/** Whole seconds, both ends included. */
interface Window {
  readonly from: number;
  readonly to: number;
}

/** `created` as a bare number or as gt, gte, lt, lte (the first and third exclude their bound). */
function createdWindow(params: Params): Window {
  const created = params["created"];
  if (created === undefined) return { from: -Infinity, to: Infinity };
  if (typeof created === "string") {
    const exact = integer(params, "created");
    if (exact === undefined) throw invalidParam("Invalid created", "created");
    return { from: exact, to: exact };
  }
  const bounds = created as Params;
  for (const name of Object.keys(bounds)) {
    if (!["gt", "gte", "lt", "lte"].includes(name)) {
      throw invalidParam(`Received unknown parameter: created[${name}]`, `created[${name}]`);
    }
  }
  const gt = integer(bounds, "gt");
  const gte = integer(bounds, "gte");
  const lt = integer(bounds, "lt");
  const lte = integer(bounds, "lte");
  return {
    from: Math.max(gte ?? -Infinity, gt === undefined ? -Infinity : gt + 1),
    to: Math.min(lte ?? Infinity, lt === undefined ? Infinity : lt - 1),
  };
}

/** The page size asked for; throws 400 outside 1 to 100. */
export function pageLimit(params: Params): number {
  const limit = integer(params, "limit") ?? PAGE_DEFAULT;
  if (limit < 1 || limit > PAGE_MAX) {
    throw invalidParam(`Limit must be between 1 and ${String(PAGE_MAX)}`, "limit");
  }
  return limit;
}

function cursor<T extends RecordBase>(
  store: RecordStore<T>,
  params: Params,
  name: string,
): Entry<T> | undefined {
  const id = text(params, name);
  if (id === undefined || id === null) return undefined;
  const entry = store.entry(id);
  if (entry === undefined) throw missing("object", id, name, 400);
  return entry;
}

/**
 * A page of `list` (all of `store`, or one of its indexes). Bounds are found by binary search and
 * only the page itself is walked, so the cost does not depend on the size of the history.
 */
export function listPage<T extends RecordBase>(
  store: RecordStore<T>,
  list: SortedList<T>,
  params: Params,
  keep: (record: T) => boolean,
): Page<T> {
  const limit = pageLimit(params);
  const window = createdWindow(params);
  const after = cursor(store, params, "starting_after");
  const before = cursor(store, params, "ending_before");
  if (after !== undefined && before !== undefined) {
    throw invalidParam("You cannot use both starting_after and ending_before", "ending_before");
  }
  const entries = list.entries();
  let low = list.position(window.from, -Infinity);
  let high = list.position(window.to, Infinity);
  if (after !== undefined) high = Math.min(high, list.position(after.created, after.sequence));
  if (before !== undefined) {
    low = Math.max(low, list.position(before.created, before.sequence + 1));
  }
  const upwards = before !== undefined;
  const found: T[] = [];
  for (let step = 0; step < high - low && found.length <= limit; step += 1) {
    const entry = entries[upwards ? low + step : high - 1 - step];
    if (entry !== undefined && keep(entry.record)) found.push(entry.record);
  }
  const items = found.slice(0, limit);
  return { items: upwards ? items.reverse() : items, hasMore: found.length > limit };
}
