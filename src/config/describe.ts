import type { Settings } from "../core/settings.ts";
import { CATALOG } from "./catalog.ts";
import { formatDuration } from "./duration.ts";
import { maskDatabaseUrl, maskHookUrl, maskSecret } from "./mask.ts";

/** The settings in force for people and logs: name -> value, secrets masked, nothing left out. */
export function describeSettings(settings: Settings): Readonly<Record<string, string>> {
  const { intents, stripe, rules, beats } = settings;
  const shown: Record<string, string> = {
    TALLYD_CONFIG: settings.configFile ?? "not set",
    DATABASE_URL: orNotSet(settings.databaseUrl, maskDatabaseUrl),
    TALLYD_DATA_DIR: settings.dataDir,
    RESOLVE: settings.resolve,
    PUBLIC_URL: settings.publicUrl ?? "not set",
    TIME_ZONE: settings.timeZone,
    LOG_LEVEL: settings.logLevel,
    FIRST_LOOKBACK: formatDuration(settings.firstLookbackMs),
    INTENTS_DATABASE_URL: orNotSet(intents.databaseUrl, maskDatabaseUrl),
    INTENTS_TABLE: intents.table,
    INTENTS_CREATE: String(intents.create),
    INTENTS_TIME_ZONE: intents.timeZone ?? "not set",
    "intents.columns": JSON.stringify(intents.columns ?? "by name"),
    "intents.states": JSON.stringify(intents.states),
    "intents.write": JSON.stringify(intents.write ?? "not set"),
    STRIPE_API_KEY: orNotSet(stripe.apiKey, maskSecret),
    STRIPE_WEBHOOK_SECRET: stripe.webhookSecrets.map(maskSecret).join(", ") || "not set",
    STRIPE_API_BASE: stripe.apiBase ?? "not set",
    STRIPE_LIVEMODE: String(stripe.livemode),
    STRIPE_ACCOUNTS: stripe.accounts.join(","),
    STRIPE_METADATA_KEY: stripe.metadataKey,
    STRIPE_REFERENCE_KEY: stripe.referenceKey,
    STRIPE_KEY_METADATA: stripe.keyMetadata.join(","),
    STRIPE_OWNED: JSON.stringify(stripe.owned ?? "everything"),
    STRIPE_SUBSCRIPTIONS: stripe.subscriptions,
    STRIPE_READS_PER_SECOND: String(stripe.readsPerSecond),
    EVM_CHAINS: `${String(settings.chains.length)} chains`,
    SLACK_WEBHOOK_URL: orNotSet(settings.slackWebhookUrl, maskHookUrl),
    SLACK_CRITICAL_WEBHOOK_URL: orNotSet(settings.slackCriticalWebhookUrl, maskHookUrl),
    SLACK_SIGNING_SECRET: orNotSet(settings.slackSigningSecret, maskSecret),
    WEBHOOK_URL: orNotSet(settings.webhook?.url ?? null, maskHookUrl),
    WEBHOOK_SECRET: settings.webhook?.secrets.map(maskSecret).join(", ") ?? "not set",
    PAGERDUTY_ROUTING_KEY: orNotSet(settings.pagerDuty?.routingKey ?? null, maskSecret),
    PAGERDUTY_API_BASE: settings.pagerDuty?.apiBase ?? "not used",
    DIGEST_AT: settings.digestAt ?? "off",
    REMINDERS: settings.remindersMs.map(formatDuration).join(",") || "off",
    HEARTBEAT_URL: orNotSet(settings.heartbeatUrl, maskHookUrl),
    PORT: String(settings.port),
    HOST: settings.host,
    ADMIN_PORT: String(settings.adminPort),
    ADMIN_HOST: settings.adminHost,
    ADMIN_TOKEN: orNotSet(settings.adminToken, maskSecret),
    ...describeRules(rules),
    LOCAL_BEAT: formatDuration(beats.localMs),
    LOCAL_FULL_BEAT: formatDuration(beats.localFullMs),
    EVENTS_BEAT: formatDuration(beats.eventsMs),
    LISTS_BEAT: formatDuration(beats.listsMs),
    AUDIT_BEAT: formatDuration(beats.auditMs),
    CHAINS_BEAT: formatDuration(beats.chainsMs),
  };
  return Object.fromEntries(
    CATALOG.map((entry) => entry.env ?? entry.path ?? "").map((name) => [name, shown[name] ?? ""]),
  );
}

function describeRules(rules: Settings["rules"]): Record<string, string> {
  return {
    IN_FLIGHT_LIMIT: formatDuration(rules.inFlightLimitMs),
    ASYNC_LIMIT: formatDuration(rules.asyncLimitMs),
    ORPHAN_GRACE: formatDuration(rules.orphanGraceMs),
    RETRY_HORIZON: formatDuration(rules.retryHorizonMs),
    DUPLICATE_WINDOW: formatDuration(rules.duplicateWindowMs),
    SIMILAR_WINDOW: formatDuration(rules.similarWindowMs),
    ATTEMPT_WINDOW: formatDuration(rules.attemptWindowMs),
    SAFETY_LAG: formatDuration(rules.safetyLagMs),
    CLOCK_SLACK: formatDuration(rules.clockSlackMs),
    LADDER_STRIPE: rules.ladder.stripe.map(formatDuration).join(","),
    LADDER_EVM: rules.ladder.evm.map(formatDuration).join(","),
    ALLOW_REPEATS: `${String(rules.allowRepeats.length)} rules`,
    SPEND_CAPS: `${String(rules.spendCaps.length)} caps`,
  };
}

function orNotSet(value: string | null, show: (value: string) => string): string {
  return value === null ? "not set" : show(value);
}
