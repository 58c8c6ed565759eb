import { BugError } from "../core/errors.ts";
import { readFetched, requestsOf } from "../sources/stripe/lookup.ts";
import type { LookupDeps } from "../sources/stripe/lookup.ts";
import { PROOF_LISTS } from "../sources/stripe/walk-lists.ts";
import { applyFacts } from "../store/mirror.ts";
import { requestRefetch } from "../store/refetch.ts";
import type { TimeRange } from "../store/sources.ts";
import { withTx } from "../store/tx.ts";

/** What a direct look at the lists showed. */
export interface ListsLook {
  /** One page of each list held the whole range. */
  readonly complete: boolean;
  /** When the look began, by our clock. */
  readonly lookedAt: Date;
}

const MS_PER_SECOND = 1_000;

/**
 * Reads the newest page of both proof lists over [from, to), whatever is covered already: the
 * direct look right before an absence verdict (invariant 2). What is found goes into the mirror;
 * coverage does not move. Throws UnreadableError.
 */
export async function lookAtLists(
  deps: LookupDeps,
  scope: string,
  range: TimeRange,
): Promise<ListsLook> {
  const lookedAt = deps.clock.now();
  // Stripe's times are whole seconds: both ends are widened, never narrowed.
  const created = {
    from: Math.floor(range.from.getTime() / MS_PER_SECOND),
    to: Math.ceil(range.to.getTime() / MS_PER_SECOND),
  };
  let complete = true;
  for (const resource of PROOF_LISTS) {
    const page = await deps.client.list(scope, resource, { created });
    if (page.kind === "cursor_gone") throw new BugError("a first page has no cursor to lose");
    const { objects, readAt } = page;
    const readings = objects.map((object) => readFetched(deps, { scope, object, readAt }));
    const facts = readings.flatMap((reading) => reading.facts);
    const requests = readings.flatMap((reading) => requestsOf(scope, reading));
    await withTx(deps.pool, async (tx) => {
      await applyFacts(tx, facts, lookedAt);
      await requestRefetch(tx, { requests, now: lookedAt });
    });
    complete &&= !page.hasMore;
  }
  return { complete, lookedAt };
}
