import type { ResolveDeps } from "./deps.ts";
import { mergeRanges } from "./merge-ranges.ts";
import { attemptsOf } from "./refresh.ts";
import type { Candidate } from "./refresh.ts";
import type { LastLook, Range } from "./situation.ts";

/** A look at both lists of a range right now. */
export interface ListsLooked {
  /** `null`: Stripe cannot be asked at all. */
  readonly look: LastLook | null;
  /** True: something was read for it, so what changed has to be placed. */
  readonly read: boolean;
}

/** Looks at both lists of a range. Throws UnreadableError. */
export type ListLooker = (range: Range) => Promise<ListsLooked>;

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
  if (stripe === null) return () => Promise.resolve({ look: null, read: false });
  const merged = mergeRanges(candidates.map(({ row }) => attemptsOf(row, rules)));
  const seen = new Map<Range, { readonly complete: boolean; readonly lookedAt: Date }>();
  return async (range) => {
    const whole = merged.find((one) => one.from <= range.from && range.to <= one.to) ?? range;
    const before = seen.get(whole);
    const shared = before ?? (await stripe.lookAtLists(scope, whole));
    seen.set(whole, shared);
    const sameRange = whole.from >= range.from && whole.to <= range.to;
    const serves = shared.complete || sameRange;
    const own = serves ? shared : await stripe.lookAtLists(scope, range);
    return {
      look: { kind: "lists", range, at: own.lookedAt },
      read: before === undefined || !serves,
    };
  };
}
