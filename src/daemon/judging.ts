/** What the judge needs, wired to the sources: direct looks, blindness, recording. */
import { UnreadableError } from "../core/errors.ts";
import type { Look } from "../core/finding.ts";
import { watchedScopes } from "../core/scope.ts";
import type { JudgeDeps, LookAnswer } from "../detect/judge.ts";
import { recordFindings } from "../incident/record.ts";
import { lookDirect } from "../sources/stripe/lookup.ts";
import { LOCAL_SOURCE } from "../sources/local/pass.ts";
import { listSources } from "../store/sources.ts";
import { lookForRow } from "./chain-steps.ts";
import type { Tallyd } from "./tallyd.ts";

/** The judge's deps. */
export function judgeDeps(tallyd: Tallyd): JudgeDeps {
  const { pool, detectors, settings, log } = tallyd;
  return {
    pool,
    detectors,
    context: { settings, localAmountMax: tallyd.local.knownShape()?.amountMax ?? null },
    now: tallyd.now,
    look: (look) => answerOf(tallyd, look),
    blindScopes: () => blindScopes(tallyd),
    record: (input) => recordFindings({ pool, settings }, input),
    log,
  };
}

async function answerOf(tallyd: Tallyd, look: Look): Promise<LookAnswer> {
  try {
    return (await isThere(tallyd, look)) ? "found" : "absent";
  } catch (error) {
    if (error instanceof UnreadableError) return "unreadable";
    throw error;
  }
}

async function isThere(tallyd: Tallyd, look: Look): Promise<boolean> {
  if (look.source === "local") return tallyd.local.look(look);
  if (look.source === "evm") return lookForRow(tallyd, look.scope, look.intent);
  const { stripe, pool, clock, settings } = tallyd;
  if (stripe === null) {
    throw new UnreadableError("auth", "without STRIPE_API_KEY nothing can be looked up at Stripe");
  }
  return (await lookDirect({ client: stripe, pool, clock, settings }, look.scope, look.id)).found;
}

/** Scopes where a source fails now: what is not seen there cannot close anything. */
async function blindScopes(tallyd: Tallyd): Promise<ReadonlySet<string>> {
  const failing = (await listSources(tallyd.pool)).filter((row) => row.failingSince !== null);
  const scopes = failing.map((row) => row.scope);
  // The team's table speaks about every scope.
  const all = scopes.includes(LOCAL_SOURCE.scope) ? watchedScopes(tallyd.settings) : [];
  return new Set([...scopes, ...all]);
}
