/**
 * The ladder of growing delays between the looks at one ambiguous row (README.md, what it settles
 * by itself).
 */
import { isChainScope } from "../core/chain.ts";
import { addMs } from "../core/clock.ts";
import type { RuleSettings } from "../core/settings.ts";
import type { CandidateLimits } from "../store/ladder.ts";
import type { Decision, Missing } from "./decision.ts";

/** When the next look is; or that the ladder has ended, and what was missing. */
export type NextLook =
  | { readonly kind: "look"; readonly at: Date }
  | { readonly kind: "end"; readonly missing: readonly Missing[] };

/** The settings that time the looks. */
export type LadderRules = Pick<
  RuleSettings,
  "ladder" | "asyncLimitMs" | "inFlightLimitMs" | "attemptWindowMs"
>;

/** Which rows count as ambiguous at `now`; see sql/resolve/candidates.sql. */
export function candidateLimits(rules: LadderRules, now: Date): CandidateLimits {
  const attemptsOverMs = Math.min(rules.attemptWindowMs, rules.inFlightLimitMs);
  return {
    now,
    stuckBefore: addMs(now, -rules.inFlightLimitMs),
    attemptsOver: addMs(now, -attemptsOverMs),
  };
}

/**
 * The look after one that settled nothing. The rungs count from `since`, the row's last change; a
 * moment at which time alone may complete the proof is a rung too. While an object at the provider
 * is not final the ladder goes on past its last rung, until the limit for methods that settle days
 * later.
 */
export function nextLook(
  rules: LadderRules,
  input: {
    readonly scope: string;
    readonly since: Date;
    readonly now: Date;
    readonly decision: Decision;
  },
): NextLook {
  const { since, now, decision } = input;
  const rungs = isChainScope(input.scope) ? rules.ladder.evm : rules.ladder.stripe;
  const times = rungs.map((delayMs) => addMs(since, delayMs));
  if ((decision.kind === "wait" || decision.kind === "unproven") && decision.until !== null) {
    times.push(decision.until);
  }
  const open = decision.kind === "wait" && decision.on === "provider";
  const limit = addMs(since, rules.asyncLimitMs);
  if (open && limit > now) {
    const lastMs = Math.max(...rungs, 0);
    const again = addMs(now, lastMs);
    times.push(lastMs === 0 || again > limit ? limit : again);
  }
  const ahead = times.filter((time) => time > now).map((time) => time.getTime());
  if (ahead.length === 0) return { kind: "end", missing: missingAtEnd(decision) };
  return { kind: "look", at: new Date(Math.min(...ahead)) };
}

function missingAtEnd(decision: Decision): readonly Missing[] {
  switch (decision.kind) {
    case "unproven":
      return decision.missing;
    case "wait":
      return [{ what: "status", detail: decision.reason, ids: decision.objects }];
    case "hold":
      return [{ what: "owner", detail: decision.reason, ids: decision.charges }];
    case "record":
    case "fail_terminal":
    case "fail_retryable":
      return [{ what: "write", detail: `${decision.reason}, and it was not written`, ids: [] }];
  }
}
