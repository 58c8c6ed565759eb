import type { Range } from "./situation.ts";

/**
 * The fewest ranges that hold all of the given ones, oldest first: ranges that overlap or touch are
 * read as one, so that many rows of one hour cost one walk.
 */
export function mergeRanges(ranges: readonly Range[]): Range[] {
  const merged: Range[] = [];
  const sorted = ranges
    .filter((range) => range.from < range.to)
    .toSorted((a, b) => a.from.getTime() - b.from.getTime());
  for (const range of sorted) {
    const last = merged.at(-1);
    if (last === undefined || range.from > last.to) merged.push(range);
    else if (range.to > last.to) merged[merged.length - 1] = { from: last.from, to: range.to };
  }
  return merged;
}
