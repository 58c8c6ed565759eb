import type { Pool } from "pg";
import type { Clock } from "../../core/clock.ts";
import type { TimeRange } from "../../store/sources.ts";
import { covers, getSource, saveProgress } from "../../store/sources.ts";
import { withTx } from "../../store/tx.ts";
import type { EventCursor, EventHole } from "./event-cursor.ts";
import { readEventCursor, withHole, writeEventCursor } from "./event-cursor.ts";
import type { WalkedResource } from "./walk-range.ts";
import { listSource } from "./walk-range.ts";

/** Name of the source row of the events list. */
export const EVENTS_SOURCE = "stripe.events";

/** The bookmark of the events list in a scope; an empty one when it was never swept. */
export async function eventCursor(pool: Pool, scope: string): Promise<EventCursor> {
  const row = await getSource(pool, { source: EVENTS_SOURCE, scope });
  return readEventCursor(row?.cursor);
}

/** Holes of the events list that no list walk has filled yet, oldest first. */
export async function openHoles(pool: Pool, scope: string): Promise<readonly EventHole[]> {
  return (await eventCursor(pool, scope)).holes.filter((hole) => hole.filledAt === null);
}

/** Notes that the events of a range are gone for good. Says nothing about what was read. */
export async function recordHole(
  pool: Pool,
  input: { readonly scope: string; readonly hole: TimeRange },
): Promise<void> {
  await changeCursor(pool, input.scope, (cursor) => withHole(cursor, input.hole));
}

/** Notes the first sweep of a scope; later calls change nothing. */
export async function recordStart(
  pool: Pool,
  input: { readonly scope: string; readonly at: Date },
): Promise<void> {
  await changeCursor(pool, input.scope, (cursor) =>
    cursor.startedAt === null ? { ...cursor, startedAt: input.at } : cursor,
  );
}

/** Closes the holes over which every one of `lists` is completely read (case B25 c). */
export async function closeFilledHoles(
  deps: { readonly pool: Pool; readonly clock: Clock },
  input: { readonly scope: string; readonly lists: readonly WalkedResource[] },
): Promise<void> {
  const { scope, lists } = input;
  for (const hole of await openHoles(deps.pool, scope)) {
    const read = await Promise.all(
      lists.map((resource) =>
        covers(deps.pool, { source: listSource(resource), scope, from: hole.from, to: hole.to }),
      ),
    );
    if (!read.every(Boolean)) continue;
    const filledAt = deps.clock.now();
    await changeCursor(deps.pool, scope, (cursor) => ({
      ...cursor,
      holes: cursor.holes.map((known) =>
        known.from.getTime() === hole.from.getTime() && known.to.getTime() === hole.to.getTime()
          ? { ...known, filledAt }
          : known,
      ),
    }));
  }
}

async function changeCursor(
  pool: Pool,
  scope: string,
  change: (cursor: EventCursor) => EventCursor,
): Promise<void> {
  await withTx(
    pool,
    async (tx) => {
      const row = await getSource(tx, { source: EVENTS_SOURCE, scope });
      const before = readEventCursor(row?.cursor);
      const after = change(before);
      if (after === before) return;
      await saveProgress(tx, {
        source: EVENTS_SOURCE,
        scope,
        cursor: writeEventCursor(after),
        coveredRange: null,
      });
    },
    // Two replicas may change one bookmark; serializable makes the later one look again.
    { isolation: "serializable" },
  );
}
