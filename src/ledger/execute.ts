/**
 * The state machine of a payment by Stripe. One worker at a time is admitted by compare-and-set,
 * and the mark is committed before anything is sent; whatever is not known afterwards is looked up.
 */
import { systemClock } from "../core/clock.ts";
import { unreachable } from "../core/errors.ts";
import { conclude, replay, refuse } from "./conclude.ts";
import type { ExecuteDeps, Payment, Step } from "./conclude.ts";
import { requireUntouched } from "./untouched.ts";
import { LedgerError } from "./errors.ts";
import { requireRail } from "./intent.ts";
import type { LedgerIntent } from "./intent.ts";
import { stripeLimitsOf } from "./limits.ts";
import type { Limits } from "./limits.ts";
import { reconcile } from "./reconcile.ts";
import { moveIntent, readIntent, requireCommitted } from "./table.ts";
import { prepareCall, sendCall } from "./stripe-call.ts";
import { runTurns } from "./turns.ts";
import type { ExecuteOptions } from "./turns.ts";

/**
 * Pays an intent, or says how far its payment is. May be called any number of times, by any number
 * of workers: money moves at most once. Throws {@link LedgerError}; its code says what to do.
 */
export async function executePayment(
  deps: ExecuteDeps,
  intentId: string,
  options: ExecuteOptions = {},
): Promise<Payment> {
  const limits = stripeLimitsOf(deps.limits);
  return runTurns(intentId, options, async () => {
    const intent = await readIntent(deps, intentId);
    requireRail(intent, "stripe");
    requireUntouched(intent);
    await deps.onStep?.("read", intentId);
    return takeTurn(deps, intent, limits);
  });
}

async function takeTurn(deps: ExecuteDeps, intent: LedgerIntent, limits: Limits): Promise<Step> {
  switch (intent.state) {
    case "recorded":
      return { kind: "paid", payment: replay(intent) };
    case "failed_terminal":
      throw refuse(intent.intentId, intent.response, "it failed for good");
    case "key_minted":
    case "failed_retryable":
      return intent.ageMs < limits.horizonMs
        ? attempt(deps, intent, limits)
        : reconcile(deps, intent, limits);
    case "in_flight":
      return inFlight(deps, intent, limits);
    case "reconciling":
      return reconcile(deps, intent, limits);
    default:
      return unreachable(intent.state);
  }
}

async function inFlight(deps: ExecuteDeps, intent: LedgerIntent, limits: Limits): Promise<Step> {
  if (intent.sinceMs >= limits.inFlightMs) {
    // Its worker died somewhere between the mark and the answer.
    if (intent.chargeId === null) await moveIntent(deps, intent, { to: "reconciling" });
    return intent.chargeId === null ? { kind: "again" } : reconcile(deps, intent, limits);
  }
  // With an object of its own it is the provider that is not done, and nobody holds it.
  return intent.chargeId === null ? { kind: "held" } : reconcile(deps, intent, limits);
}

async function attempt(deps: ExecuteDeps, intent: LedgerIntent, limits: Limits): Promise<Step> {
  const { intentId } = intent;
  const call = await prepareCall(deps, intent);
  const heldFor = stopwatch();
  const held = await moveIntent(deps, intent, { to: "in_flight" });
  if (held === null) return { kind: "again" };
  await requireCommitted(deps, intentId);
  await deps.onStep?.("admitted", intentId);
  const heldMs = heldFor();
  if (heldMs > limits.holdMs) {
    await moveIntent(deps, held, { to: "failed_retryable" });
    throw new LedgerError(
      "retryable",
      `${intentId} was held for ${Math.round(heldMs)} ms before it was sent, ` +
        `${limits.holdMs} are allowed: nothing was sent`,
      { intentId, retryAfterMs: 0 },
    );
  }
  const outcome = await sendCall(deps, call, limits.timeoutMs);
  await deps.onStep?.("answered", intentId);
  return conclude(deps, held, outcome, limits);
}

/** Milliseconds since it was made, by both clocks: one of them sleeps when the machine does. */
function stopwatch(): () => number {
  const steady = performance.now();
  const wall = systemClock.now().getTime();
  return () => Math.max(performance.now() - steady, systemClock.now().getTime() - wall);
}
