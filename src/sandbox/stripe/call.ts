import { expand, refundsOf } from "./expand.ts";
import type { Params } from "./form.ts";
import type { Job } from "./job.ts";
import { LIST_PARAMS, listPage } from "./list.ts";
import { allowOnly, texts } from "./params.ts";
import type { ObjectRecord, RecordBase, Wire } from "./records.ts";
import { relatedIn, render } from "./render.ts";
import { listObject } from "./shape-parts.ts";
import { findObject } from "./space.ts";
import type { RecordStore, SortedList } from "./store.ts";

/** One request at its endpoint. */
export interface Call extends Job {
  readonly params: Params;
  /** The id in the path, empty when the path has none. */
  readonly id: string;
  readonly path: string;
  /** Whether the request named its version itself instead of taking the account's. */
  readonly versionNamed: boolean;
  /** A stale read: intents show no charge yet. */
  readonly hideLatestCharge: boolean;
}

/** Answers a call with an object, or throws ApiError. */
export type Handler = (call: Call) => Wire;

/** An endpoint; `:id` in the path stands for one segment. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly handle: Handler;
}

function shape(call: Call, record: ObjectRecord): Wire {
  const wire = render(record, call.version, relatedIn(call.space, call.world.clock.seconds()));
  const stale = call.hideLatestCharge && record.object === "payment_intent";
  return stale && wire["latest_charge"] !== undefined ? { ...wire, latest_charge: null } : wire;
}

function expanded(call: Call, wire: Wire): Wire {
  const paths = texts(call.params, "expand");
  if (paths === undefined) return wire;
  const find = (id: string): Wire | undefined => {
    const found = findObject(call.space, id);
    return found === undefined ? undefined : shape(call, found);
  };
  const refunds = (chargeId: string): readonly Wire[] =>
    call.space.refunds
      .records("charge", chargeId)
      .toReversed()
      .map((refund) => shape(call, refund));
  return expand(wire, paths, find, refundsOf(refunds));
}

/** An object as the answer to a call, with what the caller wants expanded. */
export function answer(call: Call, record: ObjectRecord): Wire {
  return expanded(call, shape(call, record));
}

/** Whether lists leave an object out at the moment. */
export function isHidden(call: Call, id: string): boolean {
  if (call.space.hidden.size === 0) return false;
  const until = call.space.hidden.get(id);
  return until !== undefined && call.world.clock.now() < until;
}

/** What a list is made of. */
export interface Listing<T extends RecordBase> {
  readonly store: RecordStore<T>;
  /** The whole store, or one of its indexes. */
  readonly list: SortedList<T>;
  /** Filters that the endpoint takes besides those of every list. */
  readonly filters: readonly string[];
  readonly keep?: (record: T) => boolean;
  readonly show: (record: T) => Wire;
}

/** Lists any records. Unknown parameters are refused: there is no filter by status or metadata. */
export function listAny<T extends RecordBase>(call: Call, listing: Listing<T>): Wire {
  allowOnly(call.params, [...LIST_PARAMS, ...listing.filters]);
  const page = listPage(
    listing.store,
    listing.list,
    call.params,
    (record) => !isHidden(call, record.id) && (listing.keep?.(record) ?? true),
  );
  return expanded(call, listObject(page.items.map(listing.show), page.hasMore, call.path));
}

/** Lists stored objects in the caller's version. */
export function listObjects<T extends ObjectRecord>(
  call: Call,
  listing: Omit<Listing<T>, "show">,
): Wire {
  return listAny(call, { ...listing, show: (record) => shape(call, record) });
}
