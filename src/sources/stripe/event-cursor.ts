import { z } from "zod";
import type { TimeRange } from "../../store/sources.ts";

/** A range of events that Stripe had deleted before they were read. */
export interface EventHole extends TimeRange {
  /** When the object lists had been read over the whole hole; `null`: it is open. */
  readonly filledAt: Date | null;
}

/** The bookmark of `stripe.events` in a scope; how far it is read stands in the coverage. */
export interface EventCursor {
  /** When this scope was swept for the first time; `null`: never. */
  readonly startedAt: Date | null;
  /** Oldest first. */
  readonly holes: readonly EventHole[];
}

// One hole is an outage of more than 30 days; whoever has more of them has other problems.
const HOLES_MAX = 20;

const time = z.iso.datetime().transform((text) => new Date(text));
const schema = z.object({
  startedAt: time.nullish().transform((value) => value ?? null),
  holes: z
    .array(z.object({ from: time, to: time, filledAt: time.nullable() }))
    .nullish()
    .transform((value) => value ?? []),
});

/**
 * Reads the cursor column of `stripe.events`. Throws ZodError when somebody else has written it:
 * a hole must not be forgotten because its note cannot be read.
 */
export function readEventCursor(cursor: unknown): EventCursor {
  return schema.parse(cursor ?? {});
}

/** Adds a hole; one with the same beginning grows. Holes that were filled are dropped first. */
export function withHole(cursor: EventCursor, hole: TimeRange): EventCursor {
  const others = cursor.holes.filter((known) => known.from.getTime() !== hole.from.getTime());
  const holes = [...others, { ...hole, filledAt: null }].sort(
    (a, b) => a.from.getTime() - b.from.getTime(),
  );
  const surplus = Math.max(0, holes.length - HOLES_MAX);
  const dropped = new Set(holes.filter((known) => known.filledAt !== null).slice(0, surplus));
  return { ...cursor, holes: holes.filter((known) => !dropped.has(known)) };
}

/** The form in which the column keeps it. */
export function writeEventCursor(cursor: EventCursor): Readonly<Record<string, unknown>> {
  return { startedAt: cursor.startedAt, holes: cursor.holes };
}
