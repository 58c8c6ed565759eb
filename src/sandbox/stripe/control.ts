import { settleIntent } from "./confirming.ts";
import type { DeliveryAttempt, Endpoint, ReleaseOrder } from "./deliver.ts";
import { closeDispute, createDispute } from "./disputing.ts";
import type { DisputeOrder } from "./disputing.ts";
import type { EventRule } from "./event-rules.ts";
import { NO_REQUEST } from "./events.ts";
import type { Fault } from "./faults.ts";
import type { Job } from "./job.ts";
import type { JournalEntry } from "./journal.ts";
import type {
  ChargeRecord,
  DisputeRecord,
  EventRecord,
  ObjectRecord,
  PaymentIntentRecord,
  PlainRecord,
  RefundRecord,
} from "./records.ts";
import { failRefund, settleRefund } from "./refunding.ts";
import { seedCustomer, seedDispute, seedEvent, seedRefund } from "./seed-aftermath.ts";
import type { SeedCustomer, SeedDispute, SeedEvent, SeedRefund } from "./seed-aftermath.ts";
import { seedCharge, seedPaymentIntent } from "./seed-payment.ts";
import type { SeedCharge, SeedPaymentIntent } from "./seed-payment.ts";
import { findObject } from "./space.ts";
import type { Space } from "./space.ts";
import type { Settings, World } from "./world.ts";

/** A webhook receiver to register. */
export interface EndpointOrder {
  readonly url: string;
  readonly id?: string;
  /** Default one new secret. */
  readonly secrets?: readonly string[];
  /** Default all events. */
  readonly enabledEvents?: readonly string[];
  /** Default the account's version. */
  readonly apiVersion?: string;
  /** Thin events name the object and carry nothing of it; default snapshot. */
  readonly payload?: "snapshot" | "thin";
  /** The events of connected accounts instead of the platform's. */
  readonly connect?: boolean;
  readonly livemode?: boolean;
}

/** Puts objects into the sandbox directly, without the API. */
export interface Seeder {
  readonly paymentIntent: (seed: SeedPaymentIntent) => PaymentIntentRecord;
  readonly charge: (seed: SeedCharge) => ChargeRecord;
  readonly refund: (seed: SeedRefund) => RefundRecord;
  readonly dispute: (seed: SeedDispute) => DisputeRecord;
  readonly event: (seed: SeedEvent) => EventRecord | undefined;
  readonly customer: (seed: SeedCustomer) => PlainRecord;
  /** Seeds `count` intents; linear, tens of thousands take well under a second. */
  readonly bulk: (count: number, make: (index: number) => SeedPaymentIntent) => void;
}

/** Steers a running sandbox. Ids are looked up in every account and mode. */
export interface Control {
  /** Sandbox time in ms. */
  readonly now: () => number;
  readonly advance: (ms: number) => void;
  /** May be changed at any time. */
  readonly settings: Settings;
  readonly seed: Seeder;
  /** Adds a fault; the returned function withdraws it. */
  readonly fault: (fault: Fault) => () => void;
  readonly clearFaults: () => void;
  /** Adds a rule for events and their deliveries; the returned function withdraws it. */
  readonly eventRule: (rule: EventRule) => () => void;
  readonly clearEventRules: () => void;
  readonly addEndpoint: (order: EndpointOrder) => Endpoint;
  readonly removeEndpoint: (id: string) => void;
  /** Starts rolling a secret: deliveries carry a signature for the old one and the new one. */
  readonly rollSecret: (endpointId: string) => string;
  /** Delivers an event again. */
  readonly deliver: (eventId: string) => void;
  readonly held: () => readonly string[];
  readonly release: (order?: ReleaseOrder) => void;
  readonly deliveries: () => readonly DeliveryAttempt[];
  /** Leaves an object out of lists for `ms` of sandbox time, by default for ever. */
  readonly hide: (id: string, ms?: number) => void;
  readonly find: (id: string) => ObjectRecord | EventRecord | undefined;
  /** Events of all accounts, oldest first within an account. */
  readonly events: () => readonly EventRecord[];
  /** A refund fails, also after it had succeeded. */
  readonly fail: (refundId: string, reason?: string) => RefundRecord;
  /** A pending refund arrives. */
  readonly settleRefund: (refundId: string) => RefundRecord;
  /** An asynchronous payment ends. */
  readonly settle: (intentId: string, outcome: "succeeded" | "failed") => void;
  readonly dispute: (chargeId: string, order?: DisputeOrder) => DisputeRecord;
  readonly closeDispute: (disputeId: string, won: boolean) => DisputeRecord;
  /** A revoked key answers 401 until it is restored. */
  readonly revokeKey: (key: string) => void;
  readonly restoreKey: (key: string) => void;
  /** The latest requests, oldest first; bounded. */
  readonly requests: readonly JournalEntry[];
  /** Requests by route, such as `GET /v1/charges/:id`. */
  readonly counts: Readonly<Record<string, number>>;
  readonly clearRequests: () => void;
  /** Resolves when no delivery, retry or delayed change is left; held deliveries do not count. */
  readonly idle: () => Promise<void>;
}

function spaceWith(world: World, id: string): Space {
  for (const space of world.spaces.values()) {
    if (findObject(space, id) !== undefined || space.events.get(id) !== undefined) return space;
  }
  throw new RangeError(`no object ${id} in the sandbox`);
}

function jobAt(world: World, id: string): Job {
  return { world, space: spaceWith(world, id), cause: NO_REQUEST, version: world.apiVersion };
}

function addEndpoint(world: World, order: EndpointOrder): Endpoint {
  const endpoint: Endpoint = {
    id: order.id ?? world.ids.next("we"),
    created: world.clock.seconds(),
    url: order.url,
    secrets: order.secrets ?? [world.ids.next("whsec")],
    enabledEvents: order.enabledEvents ?? ["*"],
    apiVersion: order.apiVersion ?? null,
    payload: order.payload ?? "snapshot",
    connect: order.connect ?? false,
    livemode: order.livemode ?? false,
    status: "enabled",
    description: null,
    metadata: {},
  };
  world.endpoints.set(endpoint.id, endpoint);
  return endpoint;
}

function rollSecret(world: World, endpointId: string): string {
  const endpoint = world.endpoints.get(endpointId);
  if (endpoint === undefined) throw new RangeError(`no webhook endpoint ${endpointId}`);
  const secret = world.ids.next("whsec");
  endpoint.secrets = [...endpoint.secrets, secret];
  return secret;
}

function deliver(world: World, eventId: string): void {
  const event = spaceWith(world, eventId).events.get(eventId);
  if (event !== undefined) world.deliverer.resend(event);
}

function createSeeder(world: World): Seeder {
  return {
    paymentIntent: (seed) => seedPaymentIntent(world, seed),
    charge: (seed) => seedCharge(world, seed),
    refund: (seed) => seedRefund(world, seed),
    dispute: (seed) => seedDispute(world, seed),
    event: (seed) => seedEvent(world, seed),
    customer: (seed) => seedCustomer(world, seed),
    bulk: (count, make) => {
      for (let index = 0; index < count; index += 1) seedPaymentIntent(world, make(index));
    },
  };
}

function find(world: World, id: string): ObjectRecord | EventRecord | undefined {
  for (const space of world.spaces.values()) {
    const found = findObject(space, id) ?? space.events.get(id);
    if (found !== undefined) return found;
  }
  return undefined;
}

function close(world: World, disputeId: string, won: boolean): DisputeRecord {
  const job = jobAt(world, disputeId);
  const dispute = job.space.disputes.get(disputeId);
  if (dispute === undefined) throw new RangeError(`no dispute ${disputeId}`);
  return closeDispute(job, dispute, won);
}

function allEvents(world: World): readonly EventRecord[] {
  return [...world.spaces.values()].flatMap((space) =>
    space.events.all.entries().map((entry) => entry.record),
  );
}

/** The control of a world. */
export function createControl(world: World): Control {
  return {
    now: world.clock.now,
    advance: world.clock.advance,
    settings: world.settings,
    seed: createSeeder(world),
    fault: (fault) => world.faults.add(fault),
    clearFaults: () => {
      world.faults.clear();
    },
    eventRule: (rule) => world.eventRules.add(rule),
    clearEventRules: () => {
      world.eventRules.clear();
    },
    addEndpoint: (order) => addEndpoint(world, order),
    removeEndpoint: (id) => {
      world.endpoints.delete(id);
    },
    rollSecret: (endpointId) => rollSecret(world, endpointId),
    deliver: (eventId) => {
      deliver(world, eventId);
    },
    held: () => world.deliverer.held(),
    release: (order = "fifo") => {
      world.deliverer.release(order);
    },
    deliveries: () => world.deliverer.log(),
    hide: (id, ms = Infinity) => {
      spaceWith(world, id).hidden.set(id, world.clock.now() + ms);
    },
    find: (id) => find(world, id),
    events: () => allEvents(world),
    fail: (id, reason = "lost_or_stolen_card") => failRefund(jobAt(world, id), id, reason),
    settleRefund: (id) => settleRefund(jobAt(world, id), id),
    settle: (id, outcome) => {
      settleIntent(jobAt(world, id), id, outcome);
    },
    dispute: (id, order = {}) => createDispute(jobAt(world, id), id, order),
    closeDispute: (id, won) => close(world, id, won),
    revokeKey: (key) => {
      world.revoked.add(key);
    },
    restoreKey: (key) => {
      world.revoked.delete(key);
    },
    get requests() {
      return world.journal.entries();
    },
    get counts() {
      return world.journal.counts();
    },
    clearRequests: () => {
      world.journal.clear();
    },
    idle: () => world.tracker.idle(),
  };
}
