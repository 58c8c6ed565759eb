// Goal: a file of schedules is checked as a whole, with every fault and its place.
// Method: texts as people write them.
import { describe, expect, test } from "vitest";

import { ConfigError } from "../../src/core/errors.ts";
import { SCHEDULES } from "../../src/lab/built-in.ts";
import { parseSchedules } from "../../src/lab/schedule.ts";

const REQUEST = { request: "a", principal: "p", operation: "o", key: "k" };

function faultsOf(value: unknown): readonly string[] {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  try {
    parseSchedules(text, "my.json");
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

function schedule(...events: unknown[]): unknown {
  return { schedules: [{ name: "mine", events }] };
}

describe("parseSchedules", () => {
  test("default: defaults are filled in", () => {
    const text = JSON.stringify(schedule({ event: "arrive", ...REQUEST }));
    expect(parseSchedules(text, "my.json")).toEqual([
      {
        ...{ name: "mine", about: "", expect: {} },
        events: [{ event: "arrive", ...REQUEST, amount: "500", destination: "shop" }],
      },
    ]);
  });
  test("behavior: the built-in schedules are valid as a file", () => {
    expect(parseSchedules(JSON.stringify({ schedules: SCHEDULES }), "x")).toEqual(SCHEDULES);
    expect(SCHEDULES).toHaveLength(8);
  });
  test("error: no JSON, no schedules", () => {
    expect(faultsOf("{")[0]).toMatch(/^my\.json is not JSON \(.*allowed: \{"schedules"/);
    expect(faultsOf({})[0]).toMatch(/^my\.json: schedules: /);
  });
  test("error: every fault of the form at once, with its place", () => {
    const faults = faultsOf(
      schedule(
        { event: "arrive", ...REQUEST, amount: "5.00" },
        { event: "explode" },
        { event: "arrive", ...REQUEST, principal: "No Name", extra: 1 },
      ),
    );
    expect(faults).toHaveLength(4);
    expect(faults[0]).toMatch(/^my\.json: schedules\[0\]\.events\[0\]\.amount: whole minor units/);
    expect(faults.join("\n")).toContain("events[1].event");
    expect(faults.join("\n")).toContain("events[2].principal: 1 to 64 of a-z");
    expect(faults.join("\n")).toContain("extra");
  });
  test("error: an amount as a number is told how to be written", () => {
    const [fault] = faultsOf(schedule({ event: "arrive", ...REQUEST, amount: 5 }));
    expect(fault).toContain("events[0].amount: whole minor units above zero");
    expect(fault).toContain("as a string");
  });
  test("error: every fault of the order at once", () => {
    const arrive = { event: "arrive", ...REQUEST };
    const one = { name: "mine", events: [arrive, arrive, { event: "complete", request: "b" }] };
    const killed = [arrive, { event: "restart" }, { event: "complete", request: "a" }];
    expect(faultsOf({ schedules: [one, { name: "mine", events: killed }] })).toEqual([
      "my.json: schedule mine is there twice: give each a name of its own",
      "my.json: schedule mine, event 2: request a arrived before; name this one otherwise",
      "my.json: schedule mine, event 3: request b is not open: it has to arrive, and ends once",
      "my.json: schedule mine, event 3: request a is not open: it has to arrive, and ends once",
    ]);
  });
});
