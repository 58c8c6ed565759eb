import { interval } from "../core/interval.ts";
import type { Settings } from "../core/settings.ts";

/** What detectors may ask for by name, besides `operations` and `as_of`. */
export interface DetectorContext {
  readonly settings: Settings;
  /** Largest amount the team's amount column can hold; `null`: no limit that matters. */
  readonly localAmountMax: bigint | null;
}

/** The named parameters of a detector run. `asOf` comes from the database's clock. */
export function detectorParameters(
  context: DetectorContext,
  input: { readonly operations: readonly string[]; readonly asOf: Date },
): Record<string, unknown> {
  const { rules, stripe, resolve, beats, chains, timeZone } = context.settings;
  return {
    operations: input.operations,
    as_of: input.asOf,
    in_flight_limit: interval(rules.inFlightLimitMs),
    async_limit: interval(rules.asyncLimitMs),
    orphan_grace: interval(rules.orphanGraceMs),
    retry_horizon: interval(rules.retryHorizonMs),
    duplicate_window: interval(rules.duplicateWindowMs),
    similar_window: interval(rules.similarWindowMs),
    local_beat: interval(beats.localMs),
    events_beat: interval(beats.eventsMs),
    lists_beat: interval(beats.listsMs),
    chains_beat: interval(beats.chainsMs),
    chain_scopes: chains.map((chain) => chain.chainId),
    resolve_mode: resolve,
    stripe_readable: stripe.apiKey !== null,
    webhooks_expected: stripe.webhookSecrets.length > 0,
    ignore_invoices: stripe.subscriptions === "ignore",
    local_amount_max: context.localAmountMax?.toString() ?? null,
    allow_repeats: JSON.stringify(
      rules.allowRepeats.map((rule) => ({
        payee: rule.payee,
        max_amount: rule.maxAmount.toString(),
      })),
    ),
    time_zone: timeZone,
    spend_caps: JSON.stringify(
      rules.spendCaps.map((cap) => ({ ...cap, amount: cap.amount.toString() })),
    ),
  };
}
