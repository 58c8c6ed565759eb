/**
 * Goal: the product says about any world what the contract says, and nothing else. Method: seeded
 * random worlds through the real way of the data, compared with a naive reference (SEEDS.md).
 */
import { afterAll, beforeAll, expect, test } from "vitest";

import { loadDetectors } from "../../src/detect/load.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { orderDifferences } from "./compare.ts";
import { judge } from "./reference.ts";
import { groupSeeds, keptSeeds, simulate, worldOf } from "./simulate.ts";
import type { Sim } from "./simulate.ts";

// Batches run side by side: one waits for the server while the other computes.
const LANES = 2;
const WORLDS = 500;
// A machine that does much else at once; alone it takes a tenth of this.
const TIMEOUT_MS = 600_000;

const detectors = loadDetectors();
let lanes: TestDb[] = [];

beforeAll(async () => {
  lanes = await Promise.all(Array.from({ length: LANES }, () => createTestDb()));
});
afterAll(async () => {
  await Promise.all(lanes.map((db) => db.close()));
});

/** The seeds to run: kept ones first, or those that the environment names. */
function seeds(): number[] {
  const { SIM_SEED, SIM_WORLDS, SIM_FROM } = process.env;
  if (SIM_SEED !== undefined) return SIM_SEED.split(",").map(Number);
  const from = Number(SIM_FROM ?? 1);
  const count = Number(SIM_WORLDS ?? WORLDS);
  return [...keptSeeds(), ...Array.from({ length: count }, (_, index) => from + index)];
}

async function runAll(wanted: readonly number[]): Promise<string[]> {
  const groups = groupSeeds(wanted);
  const reports: string[] = [];
  await Promise.all(
    lanes.map(async (db) => {
      for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
        reports.push(...(await simulate({ db, detectors }, group)));
      }
    }),
  );
  return reports;
}

function simOf(changes: Partial<Sim>): Sim {
  return { db: lanes[0]!, detectors, ...changes };
}

/** The first seed of a set-up that writes whose world has this story. */
function seedWith(story: string): number {
  for (let seed = 1; ; seed += 10) {
    if (worldOf(seed).stories.some(({ name }) => name === story)) return seed;
  }
}

test(
  "default: random worlds are told as the rules say, in any order",
  { timeout: TIMEOUT_MS },
  async () => {
    const reports = await runAll(seeds());
    expect(reports.join("\n\n")).toBe("");
  },
);

test("behavior: a seed is a world", () => {
  expect(worldOf(7)).toEqual(worldOf(7));
  expect(worldOf(7)).not.toEqual(worldOf(17));
});

test("error: a detector that is left out is missed, in the smallest world", async () => {
  const blind = detectors.filter(({ name }) => name !== "double_charge");
  const [group] = groupSeeds([seedWith("oneNoted")]);
  const [report] = await simulate(simOf({ detectors: blind }), group!);
  expect(report).toContain("missed:   double_charge reference");
  expect(report).toContain(`SIM_SEED=${String(group!.worlds[0]!.seed)}`);
  expect(report?.match(/^ {2}\w+$/gm)).toEqual(["  oneNoted"]);
});

test("error: a finding that the rules do not know is told as invented", async () => {
  const rules: typeof judge = (...world) => {
    const judged = judge(...world);
    return { ...judged, findings: judged.findings.filter((one) => one.code !== "state_drift") };
  };
  const [group] = groupSeeds([seedWith("gaveUpButHeld")]);
  const [report] = await simulate(simOf({ rules }), group!);
  expect(report).toContain("invented: state_drift");
});

test("error: a row that should have another state is told", async () => {
  const rules: typeof judge = (...world) => {
    const judged = judge(...world);
    return {
      ...judged,
      rows: judged.rows.map((row) => ({ ...row, state: "key_minted" as const })),
    };
  };
  const [group] = groupSeeds([seedWith("answerLost")]);
  const [report] = await simulate(simOf({ rules }), group!);
  expect(report).toMatch(/row \S+: should be key_minted/);
});

test("error: an order of delivery that leads to other facts is told", () => {
  const world = worldOf(7);
  const line = (status: string): string => `charge ch_${world.prefix}s0n1 ${status} 1000`;
  expect(orderDifferences(world, [line("succeeded")], [line("succeeded")])).toEqual([]);
  expect(orderDifferences(world, [line("succeeded")], [line("pending")])).toEqual([
    `  first order:  ${line("succeeded")}`,
    `  other order:  ${line("pending")}`,
  ]);
  expect(orderDifferences(worldOf(70), [line("succeeded")], [])).toEqual([]);
});
