import type { Settings } from "../core/settings.ts";
import { stripeScopes } from "../core/scope.ts";
import { LOCAL_SOURCE } from "../sources/local/pass.ts";
import { LOGS_SOURCE } from "../sources/evm/store-range.ts";
import { EVENTS_SOURCE } from "../sources/stripe/event-holes.ts";
import { PROOF_LISTS } from "../sources/stripe/walk-lists.ts";
import { listSource } from "../sources/stripe/walk-range.ts";
import type { ExpectedSource } from "../store/blind-sources.ts";

// As coverage_gap.sql: six beats without one that got through; short beats get an hour.
const BEATS_MAX = 6;
const SILENT_MIN_MS = 3_600_000;

/** Every source that the jobs read under these settings, and how long it may be silent. */
export function expectedSources(settings: Settings): ExpectedSource[] {
  const { beats, stripe } = settings;
  const limit = (beatMs: number): number => Math.max(BEATS_MAX * beatMs, SILENT_MIN_MS);
  const local = { ...LOCAL_SOURCE, silentMaxMs: limit(beats.localMs) };
  const chains = settings.chains.map(({ chainId: scope }) => {
    return { source: LOGS_SOURCE, scope, silentMaxMs: limit(beats.chainsMs) };
  });
  if (stripe.apiKey === null) return [local, ...chains];
  const perScope = stripeScopes(stripe).flatMap((scope) => [
    { source: EVENTS_SOURCE, scope, silentMaxMs: limit(beats.eventsMs) },
    ...PROOF_LISTS.map((resource) => ({
      source: listSource(resource),
      scope,
      silentMaxMs: limit(beats.listsMs),
    })),
  ]);
  return [local, ...chains, ...perScope];
}
