/** Seeds to worlds, worlds to batches, batches to reports; a world that differs is made smaller. */
import { readFileSync } from "node:fs";

import { systemClock } from "../../src/core/clock.ts";
import type { Settings } from "../../src/core/settings.ts";
import type { Detector } from "../../src/detect/load.ts";
import type { TestDb } from "../support/db.ts";
import { testSettings } from "../support/settings.ts";
import { differences, orderDifferences, table } from "./compare.ts";
import { planDeliveries } from "./deliveries.ts";
import { random } from "./random.ts";
import { judge } from "./reference.ts";
import { mirrorBatch, runBatch, unixSeconds } from "./run-world.ts";
import { accountOf, generateWorld } from "./world-generator.ts";
import type { Setup, Story, World } from "./world.ts";

/** Worlds that share one database and one set-up. */
export interface Group {
  readonly setup: Setup;
  readonly worlds: readonly World[];
}

export interface Sim {
  readonly db: TestDb;
  readonly detectors: readonly Detector[];
  /** The rules; a test of this simulation plants faults in them. */
  readonly rules?: typeof judge;
}

// Few enough that one wrong plan or lock shows up as one slow batch, enough to share the set-up.
const GROUP_MAX = 50;

/** The set-up of a seed: most worlds are told to a daemon that writes. */
export function setupOf(seed: number): Setup {
  switch (seed % 10) {
    case 7:
      return { resolve: "write", owned: true };
    case 8:
      return { resolve: "suggest", owned: false };
    case 9:
      return { resolve: "off", owned: false };
    default:
      return { resolve: "write", owned: false };
  }
}

/** The world of a seed, in its own set-up; one of a hundred lives on the platform's account. */
export function worldOf(seed: number): World {
  return generateWorld(seed, { setup: setupOf(seed), platform: isPlatform(seed) });
}

function isPlatform(seed: number): boolean {
  return seed % 100 === 25;
}

/**
 * Seeds of one set-up each, at most one platform world among them: it shares its scope with none.
 */
export function groupSeeds(seeds: readonly number[]): Group[] {
  const groups: { setup: Setup; worlds: World[]; platform: boolean }[] = [];
  for (const seed of new Set(seeds)) {
    const setup = setupOf(seed);
    const platform = isPlatform(seed);
    const name = JSON.stringify(setup);
    let group = groups.find(
      (one) =>
        JSON.stringify(one.setup) === name &&
        one.worlds.length < GROUP_MAX &&
        !(platform && one.platform),
    );
    if (group === undefined) {
      group = { setup, worlds: [], platform: false };
      groups.push(group);
    }
    group.worlds.push(worldOf(seed));
    group.platform ||= platform;
  }
  return groups;
}

/** Runs a group in both orders; answers a report for each world that is not as the rules say. */
export async function simulate(sim: Sim, group: Group): Promise<string[]> {
  const all = await differencesOf(sim, group);
  const reports: string[] = [];
  for (const [index, world] of group.worlds.entries()) {
    const lines = all[index] ?? [];
    if (lines.length === 0) continue;
    reports.push(await reportOn(sim, { setup: group.setup, world, lines }));
  }
  return reports;
}

/** For each world of the group what product and rules differ in, and two orders of delivery. */
async function differencesOf(sim: Sim, group: Group): Promise<string[][]> {
  const now = new Date(unixSeconds(systemClock.now()) * 1000);
  const { db, detectors } = sim;
  const { worlds, setup } = group;
  const settings = settingsOf(group);
  const deliveries = worlds.map((world) => planDeliveries(world, unixSeconds(now)));
  const batch = { db, settings, detectors, worlds, deliveries, now };
  const order = worlds.reduce((sum, world) => sum + world.seed, 0) * 2;
  // All that is said later follows from the mirror, so the other order need not go further.
  const other = await mirrorBatch({ ...batch, order: random(order) });
  const said = await runBatch({ ...batch, order: random(order + 1) });
  return worlds.map((world, index) => [
    ...differences(world, said, (sim.rules ?? judge)(world, setup, deliveries[index]!.keyless)),
    ...orderDifferences(world, said.mirror, other),
  ]);
}

function settingsOf({ setup, worlds }: Group): Settings {
  const base = testSettings({ resolve: setup.resolve });
  const accounts = worlds.map((world) => accountOf(world.seed));
  const owned = setup.owned ? { metadata: { app: "shop" } } : null;
  const stripe = { ...base.stripe, accounts, owned, referenceKey: "order" };
  return { ...base, stripe: { ...stripe, subscriptions: "ignore" } };
}

interface Case {
  readonly setup: Setup;
  readonly world: World;
  readonly lines: readonly string[];
}

async function reportOn(sim: Sim, found: Case): Promise<string> {
  const small = await shrink(sim, found);
  const note = small === null ? "\n  it differs only in the company of its batch" : "";
  const { world, lines } = small ?? found;
  const replay = `replay: SIM_SEED=${String(world.seed)} npx vitest run test/sim`;
  return (
    [`${JSON.stringify(found.setup)} ${table(world)}`, ...lines].join("\n") + `${note}\n${replay}`
  );
}

/** Leaves out one story after the other while the world still differs; null: alone it does not. */
async function shrink(sim: Sim, found: Case): Promise<Case | null> {
  let small: Case | null = await rerun(sim, found, found.world);
  if (small === null) return null;
  for (const story of found.world.stories) {
    const stories: readonly Story[] = small.world.stories.filter((one) => one !== story);
    if (stories.length === 0) break;
    small = (await rerun(sim, found, { ...found.world, stories })) ?? small;
  }
  return small;
}

async function rerun(sim: Sim, { setup }: Case, world: World): Promise<Case | null> {
  const [lines] = await differencesOf(sim, { setup, worlds: [world] });
  return lines === undefined || lines.length === 0 ? null : { setup, world, lines };
}

/** Seeds of SEEDS.md: rows of its table that begin with a number. */
export function keptSeeds(): number[] {
  const text = readFileSync(new URL("SEEDS.md", import.meta.url), "utf8");
  return [...text.matchAll(/^\| *(\d+) *\|/gm)].map((match) => Number(match[1]));
}
