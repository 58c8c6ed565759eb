import { addMs } from "../../src/core/clock.ts";
import type { Settings } from "../../src/core/settings.ts";
import { judgeOperations } from "../../src/detect/judge.ts";
import type { LookAnswer } from "../../src/detect/judge.ts";
import { loadDetectors } from "../../src/detect/load.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { placeChanged } from "../../src/match/place.ts";
import { withTx } from "../../src/store/tx.ts";
import type { World } from "./world.ts";

const detectors = loadDetectors();

/**
 * Places what changed in a world and judges the operations that it touched, as the daemon does:
 * counted, found, looked up, recorded. `afterMs`: time since the world's now.
 */
export async function judgeChanged(
  world: World,
  settings: Settings,
  options: { readonly afterMs?: number; readonly look?: LookAnswer } = {},
): Promise<void> {
  const { pool } = world;
  const asOf = addMs(world.now, options.afterMs ?? 0);
  const placed = await withTx(pool, (tx) => placeChanged(tx, settings.rules, asOf));
  await judgeOperations(
    {
      ...{ pool, detectors },
      context: { settings, localAmountMax: null },
      now: () => Promise.resolve(asOf),
      look: () => Promise.resolve(options.look ?? "absent"),
      blindScopes: () => Promise.resolve(new Set<string>()),
      record: (input) => recordFindings({ pool, settings }, input),
      log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    },
    { operations: placed.operations, asOf },
  );
}

function nothing(): void {
  // Nobody reads it.
}
