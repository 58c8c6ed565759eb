/**
 * Goal: the laboratory would show it if the real ledger paid twice: it measures, and repeats no
 * promise.
 * Method: the same ledger, schedules and processes, on a client and a table that are broken on
 * purpose; effects are counted at the provider.
 */
import path from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { inheritedEnvironment } from "../../src/config/inherited.ts";
import { systemClock } from "../../src/core/clock.ts";
import { SCHEDULES } from "../../src/lab/built-in.ts";
import { countTrace } from "../../src/lab/design.ts";
import { runLab } from "../../src/lab/lab.ts";
import { runLedger } from "../../src/lab/real-ledger.ts";
import type { RealDeps } from "../../src/lab/real-ledger.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

const WORKER = path.join(import.meta.dirname, "broken-worker.ts");
const HARD = ["overlapping_arrivals", "lost_completion", "process_restart"];

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());

function onGround(broken: string): RealDeps {
  return {
    ...{ pool: db.pool, databaseUrl: db.url, clock: systemClock, worker: WORKER },
    env: { ...inheritedEnvironment(), BROKEN: broken },
  };
}

/** Duplicates by schedule. */
async function duplicatesOn(broken: string): Promise<Readonly<Record<string, number>>> {
  const schedules = SCHEDULES.filter(({ name }) => HARD.includes(name));
  const traces = await runLedger(onGround(broken), schedules, () => undefined);
  return Object.fromEntries(
    schedules.map((one, index) => [one.name, countTrace(one, traces[index]!).duplicates]),
  );
}

describe("the real ledger on broken ground", () => {
  test("default: without keys and without compare-and-set it pays twice, and that is reported", async () => {
    const report = await runLab({
      ...{ version: "1", more: [], real: onGround("keyless,careless") },
      onProgress: () => undefined,
    });
    const twice = report.counterexamples.filter(({ what }) => what === "duplicates");
    expect(twice).toEqual(
      ["overlapping_arrivals", "process_restart"].map((schedule) => ({
        ...{ schedule, design: "ledger", kind: "claim", what: "duplicates", expected: 0, seen: 1 },
      })),
    );
  });

  test("behavior: without keys and look-ups it pays again when all has settled, and that counts", async () => {
    expect(await duplicatesOn("keyless,blind")).toEqual({
      ...{ overlapping_arrivals: 0, lost_completion: 1, process_restart: 1 },
    });
  });

  test.each(["keyless", "careless"])(
    "behavior: %s alone: the other protections hold",
    async (broken) => {
      const none = { overlapping_arrivals: 0, lost_completion: 0, process_restart: 0 };
      expect(await duplicatesOn(broken)).toEqual(none);
    },
  );
});
