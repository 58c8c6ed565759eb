import type { Pool } from "pg";
import type { Clock } from "../../core/clock.ts";
import { addMs } from "../../core/clock.ts";
import { UnreadableError } from "../../core/errors.ts";
import type { Reading } from "../../core/facts.ts";
import { recordLook } from "../../store/looks.ts";
import { applyFacts } from "../../store/mirror.ts";
import { requestRefetch } from "../../store/refetch.ts";
import { withTx } from "../../store/tx.ts";
import type { StripeReader } from "./client.ts";
import type { MarkSettings } from "./marks.ts";
import { readObject } from "./read-object.ts";
import { readWindow } from "./read-window.ts";
import type { StripeObject } from "./stripe-object.ts";
import { isMissing } from "./translate-error.ts";
import { toSeconds } from "./walk-range.ts";

/** What look-ups need. */
export interface LookupDeps {
  readonly client: StripeReader;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly settings: { readonly stripe: MarkSettings };
}

/** What a direct look showed. `reading` is empty when the object was denied. */
export interface LookedUp {
  readonly found: boolean;
  readonly reading: Reading;
  /** When the look began, by our clock; it is stored as the proof's time. */
  readonly lookedAt: Date;
}

/** All attempts of a payment intent, or Stripe denies the intent. */
export type AttemptsLook =
  { readonly kind: "read"; readonly reading: Reading } | { readonly kind: "missing" };

// Stripe's clock may be ahead of ours; an attempt that it dates into our future counts too.
const AHEAD_MS = 10 * 60_000;

const NOTHING: Reading = { facts: [], refetch: [] };

/**
 * Asks Stripe for one object, right before an absence verdict is spoken (invariant 2). What is
 * found goes into the mirror; that somebody looked is noted either way. Whether a denial of a
 * young object means anything is the caller's to judge (case B23). Throws UnreadableError: then
 * nothing is known and nothing is noted.
 */
export async function lookDirect(deps: LookupDeps, scope: string, id: string): Promise<LookedUp> {
  const lookedAt = deps.clock.now();
  const retrieved = await deps.client.retrieve(scope, id);
  const found = retrieved.kind === "found";
  const reading = found
    ? readFetched(deps, { scope, object: retrieved.object, readAt: retrieved.readAt })
    : NOTHING;
  await withTx(deps.pool, async (tx) => {
    await applyFacts(tx, reading.facts, lookedAt);
    await requestRefetch(tx, { requests: requestsOf(scope, reading), now: lookedAt });
    await recordLook(tx, { source: "stripe", scope, subject: id, lookedAt, found });
  });
  return { found, reading, lookedAt };
}

/**
 * Lists every charge of a payment intent, failed attempts too: `latest_charge` names the last one
 * alone. What is found goes into the mirror. Throws UnreadableError.
 */
export async function chargesOfPaymentIntent(
  deps: LookupDeps,
  scope: string,
  paymentIntent: string,
): Promise<AttemptsLook> {
  const now = deps.clock.now();
  const to = toSeconds(addMs(now, AHEAD_MS));
  const window = { scope, resource: "charges" as const, from: 0, to, paymentIntent };
  const readings: Reading[] = [];
  try {
    await readWindow(deps, window, async ({ objects, readAt }) => {
      const read = objects.map((object) => readFetched(deps, { scope, object, readAt }));
      readings.push(...read);
      await withTx(deps.pool, async (tx) => {
        for (const reading of read) await applyFacts(tx, reading.facts, now);
      });
    });
  } catch (error) {
    if (error instanceof UnreadableError && isMissing(error.cause)) return { kind: "missing" };
    throw error;
  }
  const facts = readings.flatMap((reading) => reading.facts);
  const refetch = readings.flatMap((reading) => reading.refetch);
  return { kind: "read", reading: { facts, refetch } };
}

/** Reads a fetched object; its version is when the read began, in Stripe's clock. */
export function readFetched(
  deps: Pick<LookupDeps, "settings">,
  input: { readonly scope: string; readonly object: StripeObject; readonly readAt: Date },
): Reading {
  return readObject({
    object: input.object,
    scope: input.scope,
    settings: deps.settings.stripe,
    version: { at: input.readAt, source: "fetch" },
  });
}

/** The refetches that a reading asks for. */
export function requestsOf(
  scope: string,
  reading: Reading,
): { scope: string; objectId: string; reason: string }[] {
  return reading.refetch.map(({ id, reason }) => ({ scope, objectId: id, reason }));
}
