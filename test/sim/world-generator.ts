/** From a seed to a world: a few stories of one team, told by one writer. */
import { FAULT_STORIES } from "./fault-stories.ts";
import { HONEST_STORIES } from "./honest-stories.ts";
import { maker } from "./maker.ts";
import type { StoryTeller, Writer } from "./maker.ts";
import { OPEN_STORIES } from "./open-stories.ts";
import { random } from "./random.ts";
import { TANGLED_STORIES } from "./tangled-stories.ts";
import type { Setup, Story, World } from "./world.ts";

// A tangle can be almost anything, so it has as many draws as several stories with a plot.
const TANGLES = 6;
const TELLERS: readonly (readonly [string, StoryTeller])[] = [
  HONEST_STORIES,
  FAULT_STORIES,
  OPEN_STORIES,
  ...Array.from({ length: TANGLES }, () => TANGLED_STORIES),
].flatMap((group) => Object.entries(group));
const STORIES_MIN = 2;
const STORIES_MAX = 4;
// Room for a story's own draws between the seeds of two stories of a world.
const STORY_SEEDS = 64;

/** The connected account that a world lives in; the platform world has none. */
export function accountOf(seed: number): string {
  return `acct_w${String(seed)}`;
}

/**
 * The world of a seed. `platform`: it lives on the platform's own account, where several names of
 * the team's own share one scope. Each story has a seed of its own, so that one that is left out
 * changes none of the others.
 */
export function generateWorld(
  seed: number,
  options: { readonly setup: Setup; readonly platform: boolean },
): World {
  const rng = random(seed);
  const prefix = `w${String(seed)}`;
  const account = options.platform ? `${prefix}-shop` : accountOf(seed);
  const writer: Writer = {
    account,
    scope: options.platform ? "platform/test" : `${account}/test`,
    neighbour: options.platform ? `${prefix}-market` : null,
    marksIntents: rng.chance(0.7),
    lossy: rng.chance(0.3),
  };
  const count = rng.int(STORIES_MIN, STORIES_MAX);
  const stories = Array.from({ length: count }, (_, index): Story => {
    const own = random(seed * STORY_SEEDS + index + 1);
    const [name, tell] = own.pick(TELLERS);
    const make = maker({ rng: own, setup: options.setup, writer, prefix, index });
    return { name, ...tell(make) };
  });
  return { seed, prefix, stories };
}
