/** What was kept quiet comes back by itself: no run needs to find it again for that. */
import type { Pool } from "pg";

import type { Incident, Step } from "../core/incident.ts";
import { loadQuiet, lockIncidents } from "../store/incidents.ts";
import { withTx } from "../store/tx.ts";
import type { TellSettings } from "./commit-steps.ts";
import { commitSteps } from "./commit-steps.ts";

// One transaction and one digest; what is beyond comes with the next call, a minute later.
const COME_BACK_MAX = 1_000;

/**
 * Opens what was muted until now, and tells it when it is critical; tells what came back while it
 * went on and off and has stayed since. `now` is the database's time.
 */
export async function comeBack(
  deps: { readonly pool: Pool; readonly settings: TellSettings },
  now: Date,
): Promise<{ readonly unmuted: number; readonly returned: number }> {
  return withTx(deps.pool, async (tx) => {
    await lockIncidents(tx);
    const quiet = await loadQuiet(tx, { now, limit: COME_BACK_MAX });
    if (quiet.length === 0) return { unmuted: 0, returned: 0 };
    const steps = quiet.map(stepOf);
    const told = await commitSteps(tx, deps.settings, { steps, now });
    const unmuted = steps.filter((step) => step.kind === "unmuted");
    const returned = steps.filter(({ kind, after }) => kind === "refreshed" && told.has(after.id));
    return { unmuted: unmuted.length, returned: returned.length };
  });
}

function stepOf(before: Incident): Step {
  const same = { before, changes: [] };
  if (before.status !== "muted") return { ...same, kind: "refreshed", after: before, note: null };
  const after: Incident = { ...before, status: "open", mutedUntil: null };
  return { ...same, kind: "unmuted", after, note: "the mute has run out" };
}
