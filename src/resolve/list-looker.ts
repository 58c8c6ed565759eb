import { attemptRange } from "./absence.ts";
import type { ResolveDeps } from "./deps.ts";
import { mergeRanges } from "./merge-ranges.ts";
import type { Candidate } from "./refresh.ts";
import type { LastLook, Range } from "./situation.ts";

/** Looks at both lists of a range right now; `null`: Stripe cannot be asked at all. */
export type ListLooker = (range: Range) => Promise<LastLook | null>;

/**
 * The last look before an absence is spoken: both lists, right now. Asked first for the time of all
 * rows together; where one page of each held everything, that look serves them all.
 */
export function listLooker(
  deps: ResolveDeps,
  scope: string,
  candidates: readonly Candidate[],
): ListLooker {
  const { stripe, rules } = deps;
  if (stripe === null) return () => Promise.resolve(null);
  const merged = mergeRanges(
    candidates.map(({ row }) =>
      attemptRange(
        { createdAt: new Date(row.createdAt), updatedAt: new Date(row.updatedAt) },
        rules,
      ),
    ),
  );
  const seen = new Map<Range, { readonly complete: boolean; readonly lookedAt: Date }>();
  return async (range) => {
    const whole = merged.find((one) => one.from <= range.from && range.to <= one.to) ?? range;
    const shared = seen.get(whole) ?? (await stripe.lookAtLists(scope, whole));
    seen.set(whole, shared);
    const sameRange = whole.from >= range.from && whole.to <= range.to;
    const own = shared.complete || sameRange ? shared : await stripe.lookAtLists(scope, range);
    return { kind: "lists", range, at: own.lookedAt };
  };
}
