// Goal: a person reads the evidence of an incident on a terminal, one fact a line.
// Method: evidence in, lines out; the shapes are those that the detectors make.
import { expect, test } from "vitest";

import { evidenceLines } from "../../src/cli/evidence-text.ts";

test("default", () => {
  const lines = evidenceLines({
    gapSeconds: 31,
    keeper: "ch_1",
    proven: true,
    charges: [
      { id: "ch_1", net: "1500", marks: ["L1", "k1"] },
      { id: "ch_2", net: "1500", marks: [] },
    ],
    row: { amount: "1500", reference: null },
    scopes: ["platform/test"],
  });
  expect(lines).toEqual([
    "  gapSeconds: 31",
    "  keeper: ch_1",
    "  proven: true",
    "  charges:",
    "    - id: ch_1",
    "      net: 1500",
    "      marks:",
    "        - L1",
    "        - k1",
    "    - id: ch_2",
    "      net: 1500",
    "      marks: none",
    "  row:",
    "    amount: 1500",
    "    reference: none",
    "  scopes:",
    "    - platform/test",
  ]);
});

test("behavior: nothing gives no line, and a list in a list stays readable", () => {
  expect(evidenceLines({})).toEqual([]);
  expect(evidenceLines({ pairs: [["a", "b"], ["c"]] })).toEqual([
    ...["  pairs:", "    - - a", "      - b", "    - - c"],
  ]);
});

test("behavior: length and depth have an end", () => {
  const ids = Array.from({ length: 500 }, (_, n) => `ch_${String(n)}`);
  const lines = evidenceLines({ ids });
  expect(lines).toHaveLength(201);
  expect(lines.at(-1)).toBe("  … 301 more lines: --json has them");
  let deep: unknown = "x";
  for (let n = 0; n < 50; n += 1) deep = { in: deep };
  expect(evidenceLines({ deep }).length).toBeLessThan(10);
});
