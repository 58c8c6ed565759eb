import { nearestName } from "../config/nearest.ts";

/** The end of a sentence about an unknown word: ` Did you mean "x"?`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearestName(word, known);
  return near === null ? "" : ` Did you mean "${near}"?`;
}
