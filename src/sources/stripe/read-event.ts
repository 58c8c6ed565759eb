/**
 * From an event, pushed or listed, to what the inbox keeps of it. Snapshot events (`event`) carry
 * the object as it was; thin ones (`v2.core.event`) only name it, so it is fetched.
 */
import { z } from "zod";

import type { Fact, KeyFact } from "../../core/facts.ts";
import { stripeScope } from "../../core/scope.ts";
import type { StripeSettings } from "../../core/settings.ts";
import { storableText } from "./marks.ts";
import type { MarkSettings } from "./marks.ts";
import { isReadKind, kindOf, readObjectPart } from "./read-object.ts";
import type { Part } from "./part.ts";
import { writeReading } from "./reading-json.ts";
import { describeIssues, idSchema } from "./wire.ts";

/** The settings that decide what becomes of an event. */
export type EventSettings = MarkSettings & Pick<StripeSettings, "accounts" | "livemode">;

/** A row for the inbox. */
export interface ReadEvent {
  readonly scope: string;
  readonly eventId: string;
  readonly type: string;
  readonly apiVersion: string | null;
  readonly createdAt: Date;
  readonly objectId: string | null;
  readonly objectType: string | null;
  readonly idempotencyKey: string | null;
  readonly requestId: string | null;
  /** JSON text of the reading; null: there is nothing to apply, the row only remembers the id. */
  readonly body: string | null;
  /** Named its object only; the twin that carries the object replaces it. */
  readonly thin: boolean;
  /** Why the object could not be read and has no id to fetch it by; null when it could. */
  readonly hopeless: string | null;
}

/** What an event is to us. */
export type EventOutcome =
  | { readonly kind: "event"; readonly event: ReadEvent }
  | { readonly kind: "other_mode"; readonly livemode: boolean }
  | { readonly kind: "foreign_account"; readonly account: string }
  | { readonly kind: "not_an_event"; readonly seen: string };

const KEY_MAX = 255;
const TYPE_MAX = 255;

const type = z
  .string()
  .max(TYPE_MAX)
  .regex(/^[\x21-\x7e]+$/);
const request = z
  // Before 2017-05-23 the request was its id alone.
  .union([
    idSchema.transform((id) => ({ id, idempotency_key: null })),
    z.object({ id: idSchema.nullish(), idempotency_key: z.string().nullish() }),
  ])
  .nullish()
  .catch(null);

const snapshotSchema = z.object({
  id: idSchema,
  object: z.literal("event"),
  type,
  api_version: z.string().max(64).nullish().catch(null),
  created: z.int().min(0).max(253_402_300_799),
  livemode: z.boolean(),
  account: idSchema.nullish(),
  context: z.string().nullish().catch(null),
  request,
  data: z.object({ object: z.unknown() }),
});

const thinSchema = z.object({
  id: idSchema,
  object: z.literal("v2.core.event"),
  type,
  created: z.iso.datetime({ offset: true }),
  livemode: z.boolean(),
  context: z.string().nullish().catch(null),
  related_object: z
    .object({ id: idSchema, type: z.string().max(64) })
    .nullish()
    .catch(null),
  reason: z.object({ request }).nullish().catch(null),
  snapshot_event: idSchema.nullish().catch(null),
});

type Snapshot = z.infer<typeof snapshotSchema>;
type Thin = z.infer<typeof thinSchema>;
type RequestOf = z.infer<typeof request>;

// The key of these events belongs to a request that did not pay (a refund, an edit, a cancel): as
// a mark of the charge it would tie the charge to the refund's row.
const OTHER_REQUESTS: ReadonlySet<string> = new Set([
  "charge.refunded",
  "charge.updated",
  "payment_intent.canceled",
]);

/**
 * Reads an event. `listedFor` names the account whose list it was read from (null: the platform);
 * leave it out for a pushed event, which names its account itself.
 */
export function readEvent(input: {
  readonly event: unknown;
  readonly settings: EventSettings;
  readonly listedFor?: string | null;
}): EventOutcome {
  const { event, settings } = input;
  const thin = kindOf(event) === "v2.core.event";
  const parsed = thin ? thinSchema.safeParse(event) : snapshotSchema.safeParse(event);
  if (!parsed.success) return { kind: "not_an_event", seen: describeIssues(parsed.error) };
  const data = parsed.data;
  if (data.livemode !== settings.livemode) {
    return { kind: "other_mode", livemode: data.livemode };
  }
  const account = input.listedFor === undefined ? accountOf(data) : input.listedFor;
  if (account !== null && !settings.accounts.includes(account)) {
    return { kind: "foreign_account", account };
  }
  const scope = stripeScope(account, data.livemode);
  return {
    kind: "event",
    event: data.object === "event" ? snapshotRow(data, { scope, settings }) : thinRow(data, scope),
  };
}

/** The connected account of a pushed event; organisation destinations name it in `context`. */
function accountOf(event: Snapshot | Thin): string | null {
  if ("account" in event && typeof event.account === "string") return event.account;
  const segment = (event.context ?? "").split("/").findLast((part) => part.startsWith("acct_"));
  return segment ?? null;
}

function snapshotRow(
  event: Snapshot,
  context: { readonly scope: string; readonly settings: MarkSettings },
): ReadEvent {
  const { scope, settings } = context;
  const createdAt = new Date(event.created * 1000);
  const object = event.data.object;
  const kind = kindOf(object);
  const base = {
    scope,
    eventId: event.id,
    type: event.type,
    apiVersion: event.api_version ?? null,
    createdAt,
    objectId: objectIdOf(object),
    objectType: kind === null ? null : kind.slice(0, 64),
    ...requestOf(event.request),
    thin: false,
  };
  if (kind === null || !isReadKind(kind)) return { ...base, body: null, hopeless: null };
  const part = readObjectPart({
    object,
    scope,
    settings,
    version: { at: createdAt, source: "event" },
    eventType: event.type,
  });
  if (part.unreadable !== null && part.refetch.length === 0) {
    return { ...base, body: null, hopeless: part.unreadable };
  }
  const facts = [...part.facts, ...keyFacts(base, part)];
  return { ...base, body: writeReading({ facts, refetch: part.refetch }), hopeless: null };
}

function thinRow(event: Thin, scope: string): ReadEvent {
  const related = event.related_object ?? null;
  const base = {
    scope,
    // Under the id of its twin, so that the two of them are one event.
    eventId: event.snapshot_event ?? event.id,
    type: event.type,
    apiVersion: null,
    createdAt: new Date(event.created),
    objectId: related?.id ?? null,
    objectType: related?.type ?? null,
    ...requestOf(event.reason?.request ?? null),
    thin: true,
    hopeless: null,
  };
  if (related === null || !isReadKind(related.type)) return { ...base, body: null };
  const refetch = [{ id: related.id, reason: "thin event: the object is only named" }];
  const facts = keyFacts(base, { facts: [], refetch, unreadable: null });
  return { ...base, body: writeReading({ facts, refetch }) };
}

function requestOf(given: RequestOf): {
  readonly idempotencyKey: string | null;
  readonly requestId: string | null;
} {
  const key = storableText(given?.idempotency_key ?? "");
  return {
    // A cut key could equal another one.
    idempotencyKey: key === "" || key.length > KEY_MAX ? null : key,
    requestId: given?.id ?? null,
  };
}

function objectIdOf(object: unknown): string | null {
  if (typeof object !== "object" || object === null || !("id" in object)) return null;
  const id = idSchema.safeParse(object.id);
  return id.success ? id.data : null;
}

/** The only trace from a key to its object (Stripe's documentation, `event.request`). */
function keyFacts(event: Omit<ReadEvent, "body" | "hopeless">, part: Part): KeyFact[] {
  const { scope, eventId, idempotencyKey, createdAt } = event;
  const type = event.type.replace(/^v1\./, "");
  if (idempotencyKey === null || event.objectId === null || OTHER_REQUESTS.has(type)) return [];
  const ids = new Set([event.objectId]);
  const intent = part.facts.find((fact) => isChargeOf(fact, event.objectId));
  if (intent?.kind === "charge" && intent.paymentIntent !== null) ids.add(intent.paymentIntent);
  return [...ids].map((objectId) => ({
    kind: "key",
    scope,
    objectId,
    idempotencyKey,
    eventId,
    at: createdAt,
  }));
}

function isChargeOf(fact: Fact, objectId: string | null): boolean {
  return fact.kind === "charge" && fact.chargeId === objectId;
}
