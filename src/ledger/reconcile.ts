/** What becomes of an intent that is in doubt: it is looked up, and never sent blindly. */
import { failFor, rangeOf, settle, several } from "./conclude.ts";
import type { ExecuteDeps, Step } from "./conclude.ts";
import { LedgerError } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import type { Limits } from "./limits.ts";
import { lookUp, unreadable } from "./look.ts";
import type { Look } from "./look.ts";
import { moveIntent } from "./table.ts";

// A look costs a read or more of Stripe's 25 a second; one that was too early can wait this long.
const LOOK_AGAIN_MS = 15_000;

/**
 * Looks the intent up and settles it. Absence counts only when all lists were read and nothing sent
 * before can still arrive; then a key that still protects is freed, and an old one is given up.
 */
export async function reconcile(
  deps: ExecuteDeps,
  intent: LedgerIntent,
  limits: Limits,
): Promise<Step> {
  const { intentId } = intent;
  const look = await lookUp(deps, intent, rangeOf(intent, limits)).catch((error: unknown) => {
    throw unreadable(error, intent, LOOK_AGAIN_MS);
  });
  await deps.onStep?.("looked", intentId);
  switch (look.kind) {
    case "done":
    case "open":
    case "differs":
      return settle(deps, intent, look);
    case "several":
      throw several(intentId, look);
    case "dead":
    case "absent":
      return absent(deps, intent, look, limits);
  }
}

async function absent(
  deps: ExecuteDeps,
  intent: LedgerIntent,
  look: Look & { readonly kind: "dead" | "absent" },
  limits: Limits,
): Promise<Step> {
  const { intentId } = intent;
  const wait = limits.settleMs - intent.sinceMs;
  if (wait > 0 || (look.kind === "absent" && !look.complete)) {
    const why = wait > 0 ? "an attempt may still arrive" : "not all payments could be read";
    throw new LedgerError("unknown", `${intentId} was not found, and ${why}`, {
      intentId,
      retryAfterMs: Math.max(wait, LOOK_AGAIN_MS),
    });
  }
  if (look.kind === "dead") return settle(deps, intent, look);
  if (intent.ageMs < limits.horizonMs) {
    await moveIntent(deps, intent, { to: "failed_retryable" });
    return { kind: "again" };
  }
  const message =
    "it never reached the provider, and its key no longer protects a retry: mint a new intent";
  const error = { type: "retention_error", code: "key_expired", message };
  return failFor(deps, intent, { error }, message);
}
