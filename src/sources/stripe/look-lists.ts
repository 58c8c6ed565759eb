import { BugError } from "../../core/errors.ts";
import { applyFacts } from "../../store/mirror.ts";
import { requestRefetch } from "../../store/refetch.ts";
import type { TimeRange } from "../../store/sources.ts";
import { withTx } from "../../store/tx.ts";
import { readFetched, requestsOf } from "./lookup.ts";
import type { LookupDeps } from "./lookup.ts";
import { PROOF_LISTS } from "./walk-lists.ts";
import { toSeconds } from "./walk-range.ts";

/** What a direct look at the lists showed. */
export interface ListsLook {
  /** One page of each list held the whole range. */
  readonly complete: boolean;
  /** When the look began, by our clock. */
  readonly lookedAt: Date;
}

/**
 * Reads the newest page of both proof lists over [from, to), whatever is covered already: the direct
 * look right before an absence verdict (invariant 2). What is found goes into the mirror; coverage
 * does not move. Throws UnreadableError.
 */
export async function lookAtLists(
  deps: LookupDeps,
  scope: string,
  range: TimeRange,
): Promise<ListsLook> {
  const lookedAt = deps.clock.now();
  const created = { from: toSeconds(range.from), to: toSeconds(range.to) };
  let complete = true;
  for (const resource of PROOF_LISTS) {
    const page = await deps.client.list(scope, resource, { created });
    if (page.kind === "cursor_gone") throw new BugError("a first page has no cursor to lose");
    const { objects, readAt } = page;
    const readings = objects.map((object) => readFetched(deps, { scope, object, readAt }));
    const requests = readings.flatMap((reading) => requestsOf(scope, reading));
    await withTx(deps.pool, async (tx) => {
      await applyFacts(
        tx,
        readings.flatMap((reading) => reading.facts),
        lookedAt,
      );
      await requestRefetch(tx, { requests, now: lookedAt });
    });
    complete &&= !page.hasMore;
  }
  return { complete, lookedAt };
}
