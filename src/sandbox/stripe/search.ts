import { answer, isHidden } from "./call.ts";
import type { Call } from "./call.ts";
import { invalidParam } from "./errors.ts";
import { isList } from "./form.ts";
import { pageLimit } from "./list.ts";
import { allowOnly, requiredText, text } from "./params.ts";
import type { ChargeRecord, PaymentIntentRecord, Wire } from "./records.ts";
import { parseQuery } from "./search-query.ts";
import type { Clause } from "./search-query.ts";
import type { Entry, RecordStore } from "./store.ts";

type Searchable = PaymentIntentRecord | ChargeRecord;

const NUMBERS = ["amount", "created"];
const TEXTS = ["currency", "customer", "status"];

function compares(have: bigint, operator: Clause["operator"], want: bigint): boolean {
  switch (operator) {
    case ":":
      return have === want;
    case ">":
      return have > want;
    case "<":
      return have < want;
    case ">=":
      return have >= want;
    case "<=":
      return have <= want;
  }
}

function holds(record: Searchable, clause: Clause): boolean {
  const { field, key, operator, value } = clause;
  if (field === "metadata" && key !== null) {
    const have = record.metadata[key];
    return value === "null" ? have === undefined : have?.toLowerCase() === value.toLowerCase();
  }
  if (NUMBERS.includes(field)) {
    if (!/^\d+$/.test(value)) throw invalidParam(`Invalid number: ${value}`, "query");
    const have = field === "amount" ? record.amount : BigInt(record.created);
    return compares(have, operator, BigInt(value));
  }
  if (!TEXTS.includes(field) || operator !== ":") {
    throw invalidParam(`Field \`${field}\` is an unsupported search field.`, "query");
  }
  if (field === "currency") return record.currency === value.toLowerCase();
  return (field === "customer" ? record.customer : record.status) === value;
}

/**
 * What the index knows of an entry. A new object is not in it for `lag` milliseconds, and a changed
 * one shows its values from before the change for as long.
 */
function indexed<T>(entry: Entry<T>, now: number, lag: number): T | undefined {
  if (now - entry.arrivedAt < lag) return undefined;
  return now - entry.changedAt >= lag ? entry.record : entry.previous;
}

/** Runs a search over a store, newest first. A miss proves nothing: the index lags. */
export function searchObjects<T extends Searchable>(call: Call, store: RecordStore<T>): Wire {
  allowOnly(call.params, ["query", "limit", "page"]);
  const query = parseQuery(requiredText(call.params, "query"));
  const limit = pageLimit(call.params);
  const from = pageStart(text(call.params, "page"));
  const now = call.world.clock.now();
  const lag = call.world.settings.searchLagMs;
  const matches = (record: T): boolean => {
    const verdicts = query.clauses.map((clause) => holds(record, clause) !== clause.negated);
    return query.any ? verdicts.includes(true) : !verdicts.includes(false);
  };
  const hits = store.all
    .entries()
    .toReversed()
    .map((entry) => indexed(entry, now, lag))
    .filter((record) => record !== undefined)
    .filter((record) => !isHidden(call, record.id) && matches(record));
  const hasMore = hits.length > from + limit;
  return {
    object: "search_result",
    data: hits.slice(from, from + limit).map((record) => answer(withoutDataPrefix(call), record)),
    has_more: hasMore,
    next_page: hasMore ? Buffer.from(String(from + limit)).toString("base64url") : null,
    url: call.path,
  };
}

function pageStart(page: string | null | undefined): number {
  if (page === undefined || page === null) return 0;
  const start = Number(Buffer.from(page, "base64url").toString("utf8"));
  if (!Number.isSafeInteger(start) || start < 0) throw invalidParam("Invalid page", "page");
  return start;
}

/** `expand[]=data.x` on a search means `x` on each hit. */
function withoutDataPrefix(call: Call): Call {
  const paths = call.params["expand"];
  if (!isList(paths)) return call;
  const own = paths.map((path) => (typeof path === "string" ? path.replace(/^data\./, "") : path));
  return { ...call, params: { ...call.params, expand: own } };
}
