/**
 * One reader for Stripe's objects, in whatever API version and by whatever way they came: parsed
 * webhook bodies, listed or fetched SDK objects. It returns facts, and the ids of what cannot be
 * believed; it never guesses (cases B13, B22, B29, B30).
 */
import type { Reading } from "../../core/facts.ts";
import type { MarkSettings } from "./marks.ts";
import type { Part, ReadContext } from "./part.ts";
import { readCharge } from "./read-charge.ts";
import { readDispute } from "./read-dispute.ts";
import { readPaymentIntent } from "./read-payment-intent.ts";
import { readRefund } from "./read-refund.ts";

/** An object to read. */
export interface ReadInput {
  /** Parsed JSON or SDK object. */
  readonly object: unknown;
  readonly scope: string;
  readonly settings: MarkSettings;
  /**
   * `event`: the event's `created`. `fetch`: the time of the read in STRIPE's clock (the `Date`
   * header of the response), so that a fast clock of ours cannot outrank later events.
   */
  readonly version: { readonly at: Date; readonly source: "event" | "fetch" };
  /** Type of the event that carried the object. */
  readonly eventType?: string;
}

const READERS: Readonly<Record<string, (object: unknown, context: ReadContext) => Part>> = {
  payment_intent: readPaymentIntent,
  charge: readCharge,
  refund: readRefund,
  dispute: readDispute,
};

const NOT_READ: Part = { facts: [], refetch: [], unreadable: null };
const MS_PER_SECOND = 1000;

/** Whether objects of this kind (`object.object`) are read at all. */
export function isReadKind(kind: string): boolean {
  return Object.hasOwn(READERS, kind);
}

/**
 * Reads an object; kinds that are not read give no facts. Never throws: what cannot be read is
 * named in `refetch` where it has an id.
 */
export function readObject(input: ReadInput): Reading {
  const part = readObjectPart(input);
  return { facts: part.facts, refetch: part.refetch };
}

/** The same, with the reason why the object itself was not readable. */
export function readObjectPart(input: ReadInput): Part {
  const kind = kindOf(input.object);
  if (kind === null || !isReadKind(kind)) return NOT_READ;
  const reader = READERS[kind];
  if (reader === undefined) return NOT_READ;
  return reader(input.object, {
    scope: input.scope,
    settings: input.settings,
    versionAt: wholeSecond(input.version.at),
    eventType: input.version.source === "event" ? (input.eventType ?? null) : null,
  });
}

/** `object.object`, or null when the value is not one of Stripe's objects. */
export function kindOf(object: unknown): string | null {
  if (typeof object !== "object" || object === null || !("object" in object)) return null;
  return typeof object.object === "string" ? object.object : null;
}

/**
 * Stripe's `created` has whole seconds. A fetch is cut to the same grain: otherwise one at .5 of a
 * second would outrank an event of .9 that is stamped with the second's beginning.
 */
function wholeSecond(at: Date): Date {
  return new Date(Math.floor(at.getTime() / MS_PER_SECOND) * MS_PER_SECOND);
}
