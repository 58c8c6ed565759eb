import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { missing } from "../errors.ts";
import { text } from "../params.ts";
import type { Wire } from "../records.ts";
import { minor } from "../shape-parts.ts";

function list(call: Call): Wire {
  const store = call.space.ledger;
  const source = text(call.params, "source") ?? null;
  const payout = text(call.params, "payout") ?? null;
  const type = text(call.params, "type") ?? null;
  const currency = text(call.params, "currency") ?? null;
  const listed =
    source !== null
      ? store.by("source", source)
      : payout !== null
        ? store.by("payout", payout)
        : store.all;
  return listObjects(call, {
    store,
    list: listed,
    filters: ["source", "payout", "type", "currency"],
    keep: (entry) =>
      (type === null || entry.type === type) && (currency === null || entry.currency === currency),
  });
}

function balance(call: Call): Wire {
  const now = call.world.clock.seconds();
  const available = new Map<string, bigint>();
  const pending = new Map<string, bigint>();
  for (const { record } of call.space.ledger.all.entries()) {
    const sums = record.available_on <= now ? available : pending;
    sums.set(record.currency, (sums.get(record.currency) ?? 0n) + record.amount - record.fee);
  }
  const show = (sums: Map<string, bigint>): Wire[] =>
    [...sums].map(([currency, sum]) => ({ amount: minor(sum), currency, source_types: {} }));
  return {
    object: "balance",
    available: show(available),
    livemode: call.space.livemode,
    pending: show(pending),
  };
}

/** Endpoints of the ledger. */
export const LEDGER_ROUTES: readonly Route[] = [
  { method: "GET", path: "/v1/balance", handle: balance },
  { method: "GET", path: "/v1/balance_transactions", handle: list },
  {
    method: "GET",
    path: "/v1/balance_transactions/:id",
    handle: (call: Call): Wire => {
      const entry = call.space.ledger.get(call.id);
      if (entry === undefined) throw missing("balance transaction", call.id, "id");
      return answer(call, entry);
    },
  },
];
