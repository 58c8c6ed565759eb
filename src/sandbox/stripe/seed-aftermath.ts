import { putCharge } from "./charging.ts";
import { createDispute } from "./disputing.ts";
import type { DisputeOrder } from "./disputing.ts";
import { emit, recordEvent } from "./events.ts";
import { bookRefund } from "./ledger.ts";
import type {
  DisputeRecord,
  EventRecord,
  Metadata,
  PlainRecord,
  RefundRecord,
  Wire,
} from "./records.ts";
import { fieldsOnly, jobFor } from "./seed-options.ts";
import type { Fields, SeedOptions } from "./seed-options.ts";
import { plainStore } from "./space.ts";
import type { World } from "./world.ts";

/** A refund to seed; default all that is left of its charge, succeeded. */
export type SeedRefund = Fields<RefundRecord> & SeedOptions & { readonly charge: string };

/** A dispute to seed. */
export type SeedDispute = DisputeOrder & SeedOptions & { readonly charge: string };

/** An event with data that nothing here would render: old shapes, unknown types. */
export interface SeedEvent extends SeedOptions {
  readonly type: string;
  readonly object: Wire;
  readonly id?: string;
  readonly api_version?: string | null;
  /** Unix seconds; default now. */
  readonly created?: number;
}

/** A customer to seed. */
export interface SeedCustomer extends SeedOptions {
  readonly id?: string;
  readonly created?: number;
  readonly metadata?: Metadata;
  readonly fields?: Wire;
}

/** Seeds a refund and raises its charge's running total, unless it failed or was canceled. */
export function seedRefund(world: World, seed: SeedRefund): RefundRecord {
  const job = jobFor(world, seed);
  const { space, cause } = job;
  const before = space.charges.get(seed.charge);
  if (before === undefined) throw new RangeError(`no charge ${seed.charge}`);
  const status = seed.status ?? "succeeded";
  const draft: RefundRecord = {
    id: seed.id ?? world.ids.next("re"),
    object: "refund",
    created: world.clock.seconds(),
    livemode: space.livemode,
    metadata: {},
    amount: before.amount - before.amount_refunded,
    balance_transaction: null,
    currency: before.currency,
    failure_balance_transaction: null,
    failure_reason: status === "failed" ? "unknown" : null,
    payment_intent: before.payment_intent,
    reason: null,
    status,
    ...fieldsOnly(seed),
  };
  const entry = bookRefund(world, space, draft, false);
  const record = space.refunds.put({ ...draft, balance_transaction: entry.id }, world.clock.now());
  const counted = status === "failed" || status === "canceled" ? 0n : record.amount;
  const total = before.amount_refunded + counted;
  const refunded = total >= before.amount;
  const charge = putCharge(world, space, { ...before, amount_refunded: total, refunded });
  if (seed.events === false) return record;
  const created = record.created;
  emit(world, space, { type: "refund.created", record, cause, created });
  emit(world, space, { type: "charge.refunded", record: charge, before, cause, created });
  if (status === "failed") emit(world, space, { type: "refund.failed", record, cause, created });
  return record;
}

/** Seeds a dispute on a stored charge. */
export function seedDispute(world: World, seed: SeedDispute): DisputeRecord {
  const job = jobFor(world, seed);
  if (seed.events !== false) return createDispute(job, seed.charge, seed);
  const withdraw = world.eventRules.add({ action: "not_generated", count: Infinity });
  try {
    return createDispute(job, seed.charge, seed);
  } finally {
    withdraw();
  }
}

/** Seeds an event with raw data and delivers it. Undefined when a rule kept it from being made. */
export function seedEvent(world: World, seed: SeedEvent): EventRecord | undefined {
  const job = jobFor(world, seed);
  const objectId = seed.object["id"];
  return recordEvent(world, job.space, {
    type: seed.type,
    snapshot: { kind: "wire", wire: seed.object },
    objectId: typeof objectId === "string" ? objectId : "",
    cause: job.cause,
    created: seed.created ?? world.clock.seconds(),
    id: seed.id,
    apiVersion: seed.api_version,
  });
}

/** Seeds a customer. */
export function seedCustomer(world: World, seed: SeedCustomer): PlainRecord {
  const { space } = jobFor(world, seed);
  const record: PlainRecord = {
    id: seed.id ?? world.ids.next("cus"),
    object: "customer",
    created: seed.created ?? world.clock.seconds(),
    livemode: space.livemode,
    metadata: seed.metadata ?? {},
    testToken: null,
    fields: { email: "jenny.rosen@example.com", name: "Jenny Rosen", ...seed.fields },
  };
  return plainStore(space, "customer").put(record, world.clock.now());
}
