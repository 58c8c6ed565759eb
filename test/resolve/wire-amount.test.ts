/** Goal: an amount that is written back is never rounded. Method: both sides of 2^53 (case B33). */
import { expect, test } from "vitest";

import { wireAmount } from "../../src/resolve/row-write.ts";

test.each([
  [0n, 0],
  [12_750n, 12_750],
  [9_007_199_254_740_991n, 9_007_199_254_740_991],
  [9_007_199_254_740_993n, "9007199254740993"],
])("behavior: %s is written exactly", (minor, written) => {
  expect(wireAmount(minor)).toBe(written);
});
