import { addMs } from "../core/clock.ts";
import type { Finding } from "../core/finding.ts";
import type { HookWithWaiting } from "../store/hooks.ts";
import { readHooks } from "../store/hooks.ts";
import type { Db } from "../store/pool.ts";
import { wayWords } from "./way-words.ts";

/**
 * `paused`: the other side asked to wait. `failing`: it does not answer well. `dead`: it is gone.
 */
export type HookState = "ok" | "paused" | "failing" | "dead";

export interface HookHealth {
  readonly channel: string;
  readonly state: HookState;
  /** Since when it fails; `null` while it does not. */
  readonly since: Date | null;
  /** What the hook answered last; `null` while healthy. Never holds its address. */
  readonly error: string | null;
  readonly waiting: number;
  /** Messages that may not have arrived. */
  readonly uncertain: number;
  readonly oldestWaitingAt: Date | null;
}

// Shorter failures are normal life of a network, and the retries are through by then.
const FAILING_TOLD_AFTER_MS = 900_000;

/** The state of every way out: for the health page, the metrics, doctor and exit code 4. */
export async function hookHealth(db: Db, now: Date): Promise<readonly HookHealth[]> {
  const hooks = await readHooks(db);
  return hooks.map((hook) => ({
    channel: hook.channel,
    state: stateOf(hook, now),
    since: hook.failingSince,
    error: hook.lastError,
    waiting: hook.waiting,
    uncertain: hook.uncertain,
    oldestWaitingAt: hook.oldestWaitingAt,
  }));
}

function stateOf(hook: HookWithWaiting, now: Date): HookState {
  if (hook.failingSince === null) {
    return hook.pausedUntil !== null && hook.pausedUntil > now ? "paused" : "ok";
  }
  return hook.lastErrorCode === "dead" ? "dead" : "failing";
}

/** What is wrong with the ways out, for people; shorter failures are none. */
export function wayFaults(hooks: readonly HookHealth[], now: Date): readonly string[] {
  return hookFindings(hooks, now).map((finding) => finding.summary);
}

/**
 * What is to be said about the hooks: a dead one at once, a failing one, or one whose messages do
 * not go out, after 15 minutes.
 * `evidence.channel` keeps the alert away from the hook that it is about.
 */
export function hookFindings(hooks: readonly HookHealth[], now: Date): readonly Finding[] {
  return hooks.flatMap((hook) => {
    const dead = hook.state === "dead";
    const since = hook.since ?? hook.oldestWaitingAt;
    if (since === null) return [];
    if (!dead && since > addMs(now, -FAILING_TOLD_AFTER_MS)) return [];
    return [findingOf(hook, since, dead)];
  });
}

function findingOf(hook: HookHealth, since: Date, dead: boolean): Finding {
  const { name, setting, whenDead, whenFailing } = wayWords(hook.channel);
  const answer = hook.error ?? "no answer yet";
  return {
    code: dead ? "config_error" : "coverage_gap",
    subject: `hook:${hook.channel}`,
    operationId: null,
    severity: "critical",
    basis: dead ? "dead_hook" : "failing_hook",
    ...{ rail: null, scope: null, intents: [], charges: [], amountAtRisk: null, currency: null },
    occurredAt: since,
    summary: dead
      ? `The ${name} of ${setting} is gone (${answer}): nobody hears alerts there`
      : `The ${name} of ${setting} does not take messages (${answer})`,
    advice: dead ? whenDead : whenFailing,
    evidence: { channel: hook.channel, error: hook.error, waiting: hook.waiting },
    look: null,
  };
}
