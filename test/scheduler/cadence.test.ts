/** Goal: every interval fires at each of its windows. Method: node-cron's own idea of the times. */
import { createTask } from "node-cron";
import { describe, expect, it } from "vitest";

import { cronOf, tickOf } from "../../src/scheduler/cadence.ts";

describe("cronOf", () => {
  it.each([
    [1_000, "* * * * * *"],
    [5_000, "*/5 * * * * *"],
    [7_000, "* * * * * *"],
    [60_000, "0 * * * * *"],
    [90_000, "*/30 * * * * *"],
    [600_000, "0 */10 * * * *"],
    [420_000, "0 * * * * *"],
    [3_600_000, "0 0 * * * *"],
    [5_400_000, "0 */30 * * * *"],
    [21_600_000, "0 0 */6 * * *"],
    [90_000_000, "0 0 * * * *"],
    [86_400_000, "0 0 0 * * *"],
  ])("default: %i ms", (everyMs, expected) => {
    expect(cronOf({ everyMs })).toBe(expected);
  });

  it.each([7_000, 45_000, 90_000, 420_000, 900_000, 7_200_000])(
    "behavior: a slot meets each window of %i ms",
    (everyMs) => {
      const task = createTask(cronOf({ everyMs }), () => undefined, { timezone: "UTC" });
      const slots = task.getNextRuns(200);
      const ticks = slots.map((slot) => tickOf({ everyMs }, slot).getTime());
      for (const [index, tick] of ticks.slice(1).entries()) {
        expect(tick - (ticks[index] ?? 0)).toBeLessThanOrEqual(everyMs);
      }
      void task.destroy();
    },
  );

  it.each([0, 500, -1_000, 1_500, Number.NaN])("error: %s ms is refused", (everyMs) => {
    expect(() => cronOf({ everyMs })).toThrow("whole seconds");
  });
});

describe("tickOf", () => {
  it("default: the start of the window, the same for every slot in it", () => {
    const tick = tickOf({ everyMs: 300_000 }, new Date("2026-03-29T01:04:59Z"));
    expect(tick.toISOString()).toBe("2026-03-29T01:00:00.000Z");
  });

  it("behavior: a cron schedule's tick is its slot", () => {
    const slot = new Date("2026-03-29T03:10:00Z");
    expect(tickOf({ cron: "0 10 3 * * *", everyMs: 86_400_000 }, slot)).toBe(slot);
  });
});
