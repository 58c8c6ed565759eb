import { setTimeout as sleep } from "node:timers/promises";

import type { Payment, Step } from "./conclude.ts";
import { LedgerError } from "./errors.ts";

/** How one call behaves. */
export interface ExecuteOptions {
  /** How long to wait for another worker that holds the intent; default 0: throw at once. */
  readonly waitMs?: number;
}

// A look, an attempt and what follows are four turns; more are races that were lost to others.
const TURNS_MAX = 10;
// Between two looks at a row that somebody else holds; payments take about a second.
const WAIT_STEP_MS = 50;

/** Takes turns until the intent is paid. Throws what a turn throws, and `in_progress`. */
export async function runTurns(
  intentId: string,
  options: ExecuteOptions,
  turn: () => Promise<Step>,
): Promise<Payment> {
  const ends = performance.now() + (options.waitMs ?? 0);
  let turns = 0;
  for (;;) {
    const step = await turn();
    if (step.kind === "paid") return step.payment;
    if (step.kind === "again") turns += 1;
    const left = ends - performance.now();
    if (turns >= TURNS_MAX || (step.kind === "held" && left <= 0)) {
      throw new LedgerError("in_progress", `${intentId} is being paid by another worker`, {
        intentId,
        retryAfterMs: WAIT_STEP_MS,
      });
    }
    if (step.kind === "held") await sleep(Math.min(WAIT_STEP_MS, left));
  }
}
