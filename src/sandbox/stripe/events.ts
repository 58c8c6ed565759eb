import { strikeEvent } from "./event-rules.ts";
import type { Cause, EventRecord, ObjectRecord, Snapshot, Wire } from "./records.ts";
import { changedFields, render } from "./render.ts";
import type { Related } from "./shape-parts.ts";
import type { Space } from "./space.ts";
import type { World } from "./world.ts";

/** Stripe keeps events for 30 days. */
export const EVENT_AGE_MAX_SECONDS = 30 * 24 * 60 * 60;

const MS_PER_SECOND = 1_000;

/** What Stripe does by itself has no request. */
export const NO_REQUEST: Cause = { requestId: null, idempotencyKey: null };

/** A change to tell of. */
export interface Happening {
  readonly type: string;
  readonly record: ObjectRecord;
  /** The record before the change, for `previous_attributes`. */
  readonly before?: ObjectRecord;
  readonly cause: Cause;
  /** Unix seconds; default now. */
  readonly created?: number;
}

function snapshotOf(space: Space, happening: Happening): Snapshot {
  const record = happening.record;
  return {
    kind: "record",
    record,
    before: happening.before ?? null,
    charges:
      record.object === "payment_intent"
        ? space.charges.records("payment_intent", record.id).toReversed()
        : [],
    refunds:
      record.object === "charge" ? space.refunds.records("charge", record.id).toReversed() : [],
  };
}

const NOBODY: readonly string[] = [];

/** What an event needs before it is stored. */
export interface EventDraft {
  readonly type: string;
  readonly snapshot: Snapshot;
  readonly objectId: string;
  readonly cause: Cause;
  readonly created: number;
  readonly id?: string | undefined;
  readonly apiVersion?: string | null | undefined;
}

/** Stores an event and starts its deliveries. Undefined when a rule kept it from being made. */
export function recordEvent(
  world: World,
  space: Space,
  draft: EventDraft,
): EventRecord | undefined {
  const event: EventRecord = {
    id: draft.id ?? world.ids.next("evt"),
    object: "event",
    created: draft.created,
    livemode: space.livemode,
    metadata: {},
    type: draft.type,
    api_version: draft.apiVersion === undefined ? world.apiVersion : draft.apiVersion,
    account: space.isPlatform ? null : space.account,
    snapshot: draft.snapshot,
    cause: draft.cause,
    pending: NOBODY,
  };
  const struck = strikeEvent(world.eventRules, {
    type: event.type,
    objectId: draft.objectId,
    eventId: event.id,
    endpointId: null,
  });
  if (struck.some((rule) => rule.action === "not_generated")) return undefined;
  for (const rule of struck) {
    if (rule.action === "unlisted") space.hidden.set(event.id, Infinity);
    if (rule.action === "list_delay") {
      space.hidden.set(event.id, world.clock.now() + (rule.delayMs ?? 0));
    }
  }
  space.events.put(event, world.clock.now());
  world.deliverer.announce(space, event);
  if (struck.some((rule) => rule.action === "twin")) {
    // The twin is drafted anew, so that it has an id of its own.
    recordEvent(world, space, { ...draft, id: undefined });
  }
  return event;
}

/** Makes the event of a change to a stored object. */
export function emit(world: World, space: Space, happening: Happening): EventRecord | undefined {
  return recordEvent(world, space, {
    type: happening.type,
    snapshot: snapshotOf(space, happening),
    objectId: happening.record.id,
    cause: happening.cause,
    created: happening.created ?? world.clock.seconds(),
  });
}

/** The id of the object an event is about. */
export function eventObjectId(event: EventRecord): string {
  const id =
    event.snapshot.kind === "record" ? event.snapshot.record.id : event.snapshot.wire["id"];
  return typeof id === "string" ? id : "";
}

function eventData(event: EventRecord, version: string): Wire {
  if (event.snapshot.kind === "wire") return { object: event.snapshot.wire };
  const { record, before, charges, refunds } = event.snapshot;
  const related: Related = { charges: () => charges, refunds: () => refunds, now: event.created };
  const object = render(record, version, related);
  if (before === null) return { object };
  const previous = changedFields(render(before, version, related), object);
  return { object, previous_attributes: previous };
}

/** A snapshot event; its data keeps the version it was made with, whoever asks. */
export function renderEvent(event: EventRecord, version = event.api_version): Wire {
  return {
    id: event.id,
    object: "event",
    ...(event.account === null ? {} : { account: event.account }),
    api_version: version,
    created: event.created,
    data: eventData(event, version ?? ""),
    livemode: event.livemode,
    pending_webhooks: event.pending.length,
    request: { id: event.cause.requestId, idempotency_key: event.cause.idempotencyKey },
    type: event.type,
  };
}

const PATHS: Readonly<Record<string, string>> = {
  payment_intent: "/v1/payment_intents/",
  charge: "/v1/charges/",
  refund: "/v1/refunds/",
  dispute: "/v1/disputes/",
  customer: "/v1/customers/",
};

const ID_PREFIX = "evt_";
const THIN_PREFIX = "evt_thin_";

function thinId(eventId: string): string {
  return THIN_PREFIX + eventId.slice(ID_PREFIX.length);
}

/** The id of the snapshot event behind a thin one. */
export function snapshotId(thin: string): string {
  return ID_PREFIX + thin.slice(THIN_PREFIX.length);
}

/** The thin twin of an event: names the object, carries none of its fields. */
export function renderThinEvent(event: EventRecord): Wire {
  const objectId = eventObjectId(event);
  const kind =
    event.snapshot.kind === "record" ? event.snapshot.record.object : event.snapshot.wire["object"];
  const path = typeof kind === "string" ? (PATHS[kind] ?? `/v1/${kind}s/`) : "/v1/objects/";
  const { requestId, idempotencyKey } = event.cause;
  return {
    id: thinId(event.id),
    object: "v2.core.event",
    type: `v1.${event.type}`,
    created: new Date(event.created * MS_PER_SECOND).toISOString(),
    livemode: event.livemode,
    ...(event.account === null ? {} : { context: event.account }),
    ...(requestId === null
      ? {}
      : {
          reason: {
            type: "request",
            request: { id: requestId, idempotency_key: idempotencyKey ?? "" },
          },
        }),
    related_object: { id: objectId, type: kind, url: `${path}${objectId}` },
    snapshot_event: event.id,
  };
}

/** Whether lists and look-ups still know an event. */
export function isKept(event: EventRecord, nowSeconds: number): boolean {
  return nowSeconds - event.created < EVENT_AGE_MAX_SECONDS;
}
