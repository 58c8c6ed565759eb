import { fits } from "./rules.ts";
import type { Countdown, RuleBook } from "./rules.ts";

/**
 * What can befall an event.
 * When it is made:
 * - `not_generated`: it never exists, neither delivered nor listed (Stripe fails to generate it)
 * - `unlisted`: delivered, but never in the events list
 * - `list_delay`: delivered at once, listed `delayMs` of sandbox time later
 * - `twin`: a second Event object with its own id for the same change
 * When it is delivered to an endpoint:
 * - `drop`: no attempt is made, and it stays undelivered
 * - `lose`: no attempt is made, yet it counts as delivered (the receiver answered 2xx and lost it)
 * - `repeat`: the same event `copies` times more (default 1)
 * - `hold`: kept until released, in any order
 * - `delay`: `delayMs` real milliseconds before the first attempt
 * - `skew`: the signature's time is `skewSeconds` off
 * - `bad_signature`: signed with a secret that nobody has
 */
export type EventAction =
  | "not_generated"
  | "unlisted"
  | "list_delay"
  | "twin"
  | "drop"
  | "lose"
  | "repeat"
  | "hold"
  | "delay"
  | "skew"
  | "bad_signature";

/** A rule and the events it strikes. Everything that is left out matches. */
export interface EventRule extends Countdown {
  readonly action: EventAction;
  /** Event type, `*` as wildcard. */
  readonly type?: string | undefined;
  /** Id of the object that the event is about. */
  readonly objectId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly endpointId?: string | undefined;
  readonly delayMs?: number | undefined;
  readonly copies?: number | undefined;
  readonly skewSeconds?: number | undefined;
}

const WHEN_MADE: readonly EventAction[] = ["not_generated", "unlisted", "list_delay", "twin"];

/** What a rule is matched against; `endpointId` null while the event is being made. */
export interface EventTarget {
  readonly type: string;
  readonly objectId: string;
  readonly eventId: string;
  readonly endpointId: string | null;
}

/** The rules that strike this event, either when it is made or at one endpoint. */
export function strikeEvent(book: RuleBook<EventRule>, target: EventTarget): readonly EventRule[] {
  return book.take(
    (rule) =>
      WHEN_MADE.includes(rule.action) === (target.endpointId === null) &&
      fits(rule.type, target.type) &&
      (rule.objectId === undefined || rule.objectId === target.objectId) &&
      (rule.eventId === undefined || rule.eventId === target.eventId) &&
      (rule.endpointId === undefined || rule.endpointId === target.endpointId),
  );
}
