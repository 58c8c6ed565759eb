// Goal: looks come at growing delays after the row's last change, sooner when time alone may settle
// it, longer while the provider is not done, and the end says what was missing.
import { describe, expect, test } from "vitest";

import { addMs } from "../../src/core/clock.ts";
import type { Decision } from "../../src/resolve/decision.ts";
import { candidateLimits, nextLook } from "../../src/resolve/ladder.ts";
import { mergeRanges } from "../../src/resolve/merge-ranges.ts";
import { HOUR, MINUTE, NOW, ago } from "./situations.ts";

const RULES = {
  ladder: { stripe: [MINUTE, 5 * MINUTE, HOUR], evm: [] },
  asyncLimitMs: 10 * HOUR,
  inFlightLimitMs: 10 * MINUTE,
  attemptWindowMs: 6 * MINUTE,
};

const missing = [{ what: "mark" as const, detail: "set the mark", ids: ["pi_1"] }];
const unproven: Decision = { kind: "unproven", reason: "r", missing, until: null };
const open: Decision = {
  kind: "wait",
  reason: "pi_1 is processing",
  on: "provider",
  until: null,
  objects: ["pi_1"],
};
const held: Decision = {
  kind: "hold",
  reason: "two",
  code: "double_charge",
  basis: "key",
  charges: ["ch_1", "ch_2"],
};

function next(decision: Decision, ageMs: number): string {
  const since = ago(ageMs);
  const look = nextLook(RULES, { scope: "platform/test", since, now: NOW, decision });
  return look.kind === "end"
    ? `end ${look.missing.map((one) => one.what).join(",")}`
    : `${String((look.at.getTime() - since.getTime()) / MINUTE)}m`;
}

describe("nextLook", () => {
  test.each([
    [0, "1m"],
    [MINUTE, "5m"],
    [4 * MINUTE, "5m"],
    [30 * MINUTE, "60m"],
    [HOUR, "end mark"],
    [50 * HOUR, "end mark"],
  ])("default: unproven at the age of %i ms: %s", (ageMs, expected) => {
    expect(next(unproven, ageMs)).toBe(expected);
  });

  test("behavior: the moment at which the proof gets possible is a rung too", () => {
    expect(next({ ...unproven, until: addMs(NOW, 2 * MINUTE) }, 10 * MINUTE)).toBe("12m");
    expect(next({ ...unproven, until: addMs(NOW, 2 * MINUTE) }, 2 * HOUR)).toBe("122m");
    expect(next({ ...unproven, until: ago(1) }, 2 * HOUR)).toBe("end mark");
  });

  test("behavior: an object that is not final keeps the ladder going until the long limit", () => {
    expect(next(open, 2 * HOUR)).toBe("180m");
    expect(next(open, 9.5 * HOUR)).toBe("600m");
    expect(next(open, 10 * HOUR)).toBe("end status");
    expect(next({ ...open, on: "holder" }, 2 * HOUR)).toBe("end status");
  });

  test("behavior: what is held ends with the charges that a person must look at", () => {
    expect(
      nextLook(RULES, { scope: "platform/test", since: ago(2 * HOUR), now: NOW, decision: held }),
    ).toEqual({
      kind: "end",
      missing: [{ what: "owner", detail: "two", ids: ["ch_1", "ch_2"] }],
    });
  });

  test("error: a ladder without rungs ends at once, and never loops on an open object", () => {
    const rules = { ...RULES, ladder: { stripe: [], evm: [] } };
    const input = { since: ago(MINUTE), now: NOW };
    expect(nextLook(rules, { scope: "platform/test", ...input, decision: unproven }).kind).toBe(
      "end",
    );
    expect(nextLook(rules, { scope: "platform/test", ...input, decision: open })).toEqual({
      kind: "look",
      at: addMs(ago(MINUTE), RULES.asyncLimitMs),
    });
  });
});

test("candidateLimits: past the limit, or settled and no call under way", () => {
  expect(candidateLimits(RULES, NOW)).toEqual({
    now: NOW,
    stuckBefore: ago(10 * MINUTE),
    attemptsOver: ago(6 * MINUTE),
  });
  const short = { ...RULES, inFlightLimitMs: 3 * MINUTE };
  expect(candidateLimits(short, NOW).attemptsOver).toEqual(ago(3 * MINUTE));
});

test("mergeRanges: what overlaps or touches is one walk", () => {
  const range = (from: number, to: number) => ({ from: ago(from), to: ago(to) });
  expect(
    mergeRanges([range(10, 5), range(50, 40), range(45, 30), range(5, 1), range(3, 3)]),
  ).toEqual([range(50, 30), range(10, 1)]);
  expect(mergeRanges([range(50, 10), range(40, 20)])).toEqual([range(50, 10)]);
});
