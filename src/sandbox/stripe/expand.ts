import { invalidParam } from "./errors.ts";
import type { Json, Wire } from "./records.ts";
import { listObject } from "./shape-parts.ts";

/** Stripe's limits: four levels deep; the number of paths is ours, to stop a runaway caller. */
const LEVELS_MAX = 4;
const PATHS_MAX = 20;

/** Looks an id up in the caller's name space and renders it. */
export type Resolve = (id: string) => Wire | undefined;

/** Lists that are only present when asked for. */
export type ResolveList = (owner: Wire, field: string) => Wire | undefined;

function isObject(value: Json | undefined): value is Wire {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unexpandable(path: string): Error {
  return invalidParam(`This property cannot be expanded (${path}).`, "expand");
}

interface Expander {
  readonly resolve: Resolve;
  readonly resolveList: ResolveList;
  readonly path: string;
}

function expandValue(value: Json | undefined, rest: readonly string[], by: Expander): Json {
  if (value === undefined) throw unexpandable(by.path);
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item: Json) => expandValue(item, rest, by));
  if (typeof value === "string") {
    const found = by.resolve(value);
    // An id of another account stays an id.
    if (found === undefined) return value;
    return expandIn(found, rest, by);
  }
  if (isObject(value)) return expandIn(value, rest, by);
  throw unexpandable(by.path);
}

function expandIn(wire: Wire, segments: readonly string[], by: Expander): Wire {
  const [field, ...rest] = segments;
  if (field === undefined) return wire;
  const value = wire[field] ?? by.resolveList(wire, field) ?? wire[field];
  return { ...wire, [field]: expandValue(value, rest, by) };
}

/** Replaces ids by objects along `paths` such as `latest_charge.balance_transaction`. */
export function expand(
  wire: Wire,
  paths: readonly string[],
  resolve: Resolve,
  resolveList: ResolveList,
): Wire {
  if (paths.length > PATHS_MAX) throw invalidParam("Too many expand paths", "expand");
  return paths.reduce((current, path) => {
    const segments = path.split(".");
    const levels = segments[0] === "data" ? segments.length - 1 : segments.length;
    if (levels > LEVELS_MAX) {
      throw invalidParam(`You cannot expand more than ${String(LEVELS_MAX)} levels`, "expand");
    }
    return expandIn(current, segments, { resolve, resolveList, path });
  }, wire);
}

/** `refunds` of a charge, which later versions only show on request. */
export function refundsOf(refunds: (chargeId: string) => readonly Wire[]): ResolveList {
  return (owner, field) => {
    const id = owner["id"];
    if (owner["object"] !== "charge" || field !== "refunds" || typeof id !== "string") {
      return undefined;
    }
    return listObject(refunds(id), false, `/v1/charges/${id}/refunds`);
  };
}
