/** The fleet: plays every scenario as often as it says, several agents at a time. */
import { setTimeout as sleep } from "node:timers/promises";

import type { Expected, ExpectedResolution, Injected, Scenario, SceneDeps } from "./scenario.ts";

// Enough for parallel deliveries and locks to matter, few enough for two cores.
const AGENTS = 6;
// Between two payments of one agent, so that a person can follow the story.
const PAUSE_MS = 15;

/** What the fleet has left to be found. */
export interface Played {
  readonly expected: Expected[];
  readonly resolutions: ExpectedResolution[];
  /** What people do once the trouble of a scenario was found. */
  readonly followUps: { readonly after: readonly Expected[]; readonly act: FollowUp }[];
}

type FollowUp = () => Promise<readonly Expected[]>;

/** Plays all scenarios in a shuffled order; `onPaid` is told after each one. */
export async function playFleet(
  deps: SceneDeps,
  scenarios: readonly Scenario[],
  onPaid: (scenario: Scenario) => void,
): Promise<Played> {
  const queue = shuffled(
    scenarios.flatMap((scenario) => Array.from({ length: scenario.times }, () => scenario)),
    deps.random,
  );
  const played: Played = { expected: [], resolutions: [], followUps: [] };
  const agent = async (): Promise<void> => {
    for (let scenario = queue.pop(); scenario !== undefined; scenario = queue.pop()) {
      note(played, await scenario.run(deps));
      onPaid(scenario);
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: AGENTS }, agent));
  return played;
}

function note(played: Played, injected: Injected): void {
  played.expected.push(...injected.expected);
  played.resolutions.push(...(injected.resolutions ?? []));
  if (injected.afterwards !== undefined) {
    played.followUps.push({ after: injected.expected, act: injected.afterwards });
  }
}

function shuffled<T>(items: T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** A small generator with a seed: the same story on every machine. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // Numerical Recipes' linear congruential generator: plenty for a story.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
