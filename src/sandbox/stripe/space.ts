import type {
  BalanceTransactionRecord,
  ChargeRecord,
  DisputeRecord,
  EventRecord,
  ObjectRecord,
  PaymentIntentRecord,
  PlainRecord,
  RefundRecord,
} from "./records.ts";
import { RecordStore } from "./store.ts";

/** One name space of ids: an account in one mode. */
export interface Space {
  readonly account: string;
  readonly livemode: boolean;
  readonly isPlatform: boolean;
  readonly intents: RecordStore<PaymentIntentRecord>;
  readonly charges: RecordStore<ChargeRecord>;
  readonly refunds: RecordStore<RefundRecord>;
  readonly disputes: RecordStore<DisputeRecord>;
  readonly ledger: RecordStore<BalanceTransactionRecord>;
  readonly events: RecordStore<EventRecord>;
  /** Customers, payment methods, products and the like, by kind. */
  readonly plain: Map<string, RecordStore<PlainRecord>>;
  /** Ids that lists leave out until this sandbox time (ms); Infinity is for ever. */
  readonly hidden: Map<string, number>;
}

/** An empty name space. */
export function createSpace(account: string, livemode: boolean, isPlatform: boolean): Space {
  return {
    account,
    livemode,
    isPlatform,
    intents: new RecordStore({ customer: (r) => r.customer, invoice: (r) => r.invoice }),
    charges: new RecordStore({
      payment_intent: (r) => r.payment_intent,
      customer: (r) => r.customer,
    }),
    refunds: new RecordStore({
      charge: (r) => r.charge,
      payment_intent: (r) => r.payment_intent,
    }),
    disputes: new RecordStore({
      charge: (r) => r.charge,
      payment_intent: (r) => r.payment_intent,
    }),
    ledger: new RecordStore({ source: (r) => r.source, payout: (r) => r.payout }),
    events: new RecordStore(),
    plain: new Map(),
    hidden: new Map(),
  };
}

/** The store of a plain kind (`customer`, `product`, …), made when first asked for. */
export function plainStore(space: Space, kind: string): RecordStore<PlainRecord> {
  const existing = space.plain.get(kind);
  if (existing !== undefined) return existing;
  const made = new RecordStore<PlainRecord>({
    customer: (r) => (typeof r.fields["customer"] === "string" ? r.fields["customer"] : null),
  });
  space.plain.set(kind, made);
  return made;
}

/** Any object by its id, for expansion; undefined when the space has none. */
export function findObject(space: Space, id: string): ObjectRecord | undefined {
  const known =
    space.intents.get(id) ??
    space.charges.get(id) ??
    space.refunds.get(id) ??
    space.disputes.get(id) ??
    space.ledger.get(id);
  if (known !== undefined) return known;
  for (const store of space.plain.values()) {
    const found = store.get(id);
    if (found !== undefined) return found;
  }
  return undefined;
}
