import { INTENTS, STRIPE } from "./catalog-sources.ts";

/**
 * Every setting once: how it is called in the environment and in the file, its default and what it
 * means. README tables, `--help` and the loader itself are made from this table.
 */
export interface CatalogEntry {
  /** Name in the environment; `null`: the file alone can hold it. */
  readonly env: string | null;
  /** Path in the JSON file, camelCase with dots; `null`: the environment alone can hold it. */
  readonly path: string | null;
  /** Spelled as a user would write it; `null`: not set. */
  readonly default: string | null;
  /** Said instead of the default where that depends on other settings. */
  readonly defaultNote?: string;
  /** What kind of value it is; `json` values are written as JSON in the environment. */
  readonly unit: "text" | "number" | "duration" | "yes/no" | "list" | "json";
  readonly meaning: string;
  /** How the value may be shown. Default: as it is. */
  readonly secret?: "whole" | "database" | "hook";
}

const BASE: readonly CatalogEntry[] = [
  {
    env: "TALLYD_CONFIG",
    path: null,
    default: null,
    unit: "text",
    meaning: "path of an optional JSON file with settings; the environment wins over it",
  },
  {
    env: "DATABASE_URL",
    path: "databaseUrl",
    default: null,
    defaultNote: "embedded PostgreSQL under TALLYD_DATA_DIR",
    unit: "text",
    meaning: "database of tallyd's own schema `tallyd`",
    secret: "database",
  },
  {
    env: "TALLYD_DATA_DIR",
    path: "dataDir",
    default: "./.tallyd",
    unit: "text",
    meaning: "folder of the embedded PostgreSQL",
  },
  {
    env: "RESOLVE",
    path: "resolve",
    default: "write",
    unit: "text",
    meaning: "resolver: write, suggest or off",
  },
  {
    env: "PUBLIC_URL",
    path: "publicUrl",
    default: null,
    unit: "text",
    meaning: "address of the admin pages as people reach them, for links in alerts",
  },
  {
    env: "TIME_ZONE",
    path: "timeZone",
    default: "UTC",
    unit: "text",
    meaning: "time zone of reports, of the daily digest and of spend caps per day",
  },
  {
    env: "LOG_LEVEL",
    path: "logLevel",
    default: "info",
    unit: "text",
    meaning: "debug, info, warn or error",
  },
  {
    env: "FIRST_LOOKBACK",
    path: "firstLookback",
    default: "48h",
    unit: "duration",
    meaning: "how far the first pass on an empty mirror reads back",
  },
];

const SERVERS: readonly CatalogEntry[] = [
  {
    env: "SLACK_WEBHOOK_URL",
    path: "slack.webhookUrl",
    default: null,
    defaultNote: "alerts go to the log",
    unit: "text",
    meaning: "incoming webhook for alerts",
    secret: "hook",
  },
  {
    env: "SLACK_CRITICAL_WEBHOOK_URL",
    path: "slack.criticalWebhookUrl",
    default: null,
    defaultNote: "SLACK_WEBHOOK_URL",
    unit: "text",
    meaning: "second incoming webhook, for critical alerts",
    secret: "hook",
  },
  {
    env: "SLACK_SIGNING_SECRET",
    path: "slack.signingSecret",
    default: null,
    defaultNote: "messages have no buttons",
    unit: "text",
    meaning:
      "signing secret of your Slack app: alerts get buttons, POST /slack/actions takes clicks",
    secret: "whole",
  },
  {
    env: "WEBHOOK_URL",
    path: "webhook.url",
    default: null,
    unit: "text",
    meaning: "address that gets every alert as signed JSON, for a program of yours",
    secret: "hook",
  },
  {
    env: "WEBHOOK_SECRET",
    path: "webhook.secret",
    default: null,
    defaultNote: "required with WEBHOOK_URL",
    unit: "list",
    meaning: "key of those signatures: whsec_ and 24 to 64 bytes in base64; two while it changes",
    secret: "whole",
  },
  {
    env: "PAGERDUTY_ROUTING_KEY",
    path: "pagerDuty.routingKey",
    default: null,
    unit: "text",
    meaning: "integration key of a PagerDuty service (Events API v2), for critical alerts",
    secret: "whole",
  },
  {
    env: "PAGERDUTY_API_BASE",
    path: "pagerDuty.apiBase",
    default: "https://events.pagerduty.com",
    unit: "text",
    meaning: "address of PagerDuty's events; https://events.eu.pagerduty.com in the EU",
  },
  {
    env: "DIGEST_AT",
    path: "digestAt",
    default: "09:00",
    unit: "text",
    meaning: "time of day, in TIME_ZONE, of the daily digest about the day before; off = never",
  },
  {
    env: "REMINDERS",
    path: "reminders",
    default: "30m,2h,24h",
    unit: "list",
    meaning: "when an unacknowledged critical is told again; the last wait repeats; off = never",
  },
  {
    env: "HEARTBEAT_URL",
    path: "heartbeatUrl",
    default: null,
    unit: "text",
    meaning: "address of a dead man's switch: GET every minute while the daemon is well",
    secret: "hook",
  },
  {
    env: "PORT",
    path: "port",
    default: "4242",
    unit: "number",
    meaning: "public port: POST /webhooks/stripe (and /slack/actions, if set); 0 = any free one",
  },
  {
    env: "HOST",
    path: "host",
    default: "0.0.0.0",
    unit: "text",
    meaning: "address that the public port listens on",
  },
  {
    env: "ADMIN_PORT",
    path: "adminPort",
    default: "4243",
    unit: "number",
    meaning: "port of health, metrics, pages and /api; 0 = any free one",
  },
  {
    env: "ADMIN_HOST",
    path: "adminHost",
    default: "127.0.0.1",
    unit: "text",
    meaning: "address that the admin port listens on",
  },
  {
    env: "ADMIN_TOKEN",
    path: "adminToken",
    default: null,
    defaultNote: "required when ADMIN_HOST is not a loopback address",
    unit: "text",
    meaning: "bearer token of the admin port",
    secret: "whole",
  },
];

function duration(env: string, path: string, text: string, meaning: string): CatalogEntry {
  return { env, path, default: text, unit: "duration", meaning };
}

const RULES: readonly CatalogEntry[] = [
  duration("IN_FLIGHT_LIMIT", "rules.inFlightLimit", "10m", "in_flight longer than this is stuck"),
  duration("ASYNC_LIMIT", "rules.asyncLimit", "14d", "the same for methods that settle days later"),
  duration("ORPHAN_GRACE", "rules.orphanGrace", "2m", "how long a charge may wait for its intent"),
  duration("RETRY_HORIZON", "rules.retryHorizon", "24h", "replay window of an idempotency key"),
  duration("DUPLICATE_WINDOW", "rules.duplicateWindow", "24h", "span of one proven double charge"),
  duration("SIMILAR_WINDOW", "rules.similarWindow", "10m", "span of a probable double charge"),
  // Three attempts of 80 s each and the pauses between them, doubled for a slow client.
  duration(
    "ATTEMPT_WINDOW",
    "rules.attemptWindow",
    "6m",
    "how long an SDK call may go on retrying",
  ),
  duration("SAFETY_LAG", "rules.safetyLag", "60s", "newest end of a list that is not yet trusted"),
  duration("CLOCK_SLACK", "rules.clockSlack", "5m", "how far clocks may differ"),
  {
    env: "LADDER_STRIPE",
    path: "rules.ladder.stripe",
    default: "1m,5m,30m,2h,12h,24h",
    unit: "list",
    meaning: "delays of the look-ups of an ambiguous intent at Stripe",
  },
  {
    env: "LADDER_EVM",
    path: "rules.ladder.evm",
    default: "15s,1m,5m,30m",
    unit: "list",
    meaning: "the same on chain",
  },
  {
    env: "ALLOW_REPEATS",
    path: "rules.allowRepeats",
    default: null,
    unit: "json",
    meaning: "payees that may be paid alike again: [{payee, maxAmount}]",
  },
  {
    env: "SPEND_CAPS",
    path: "rules.spendCaps",
    default: null,
    unit: "json",
    meaning: "caps: [{per: operation | account | day, currency, amount}]",
  },
];

const BEATS: readonly CatalogEntry[] = [
  duration("LOCAL_BEAT", "beats.local", "5s", "changed rows of the team's table are read"),
  duration("LOCAL_FULL_BEAT", "beats.localFull", "15m", "the whole table is read"),
  duration("EVENTS_BEAT", "beats.events", "10m", "Stripe's events list is swept"),
  duration("LISTS_BEAT", "beats.lists", "1h", "Stripe's object lists are walked"),
  duration("AUDIT_BEAT", "beats.audit", "24h", "all operations are judged again"),
  duration("CHAINS_BEAT", "beats.chains", "15s", "new blocks of the chains are read"),
];

/** The whole catalogue, in the order in which it is shown. */
export const CATALOG: readonly CatalogEntry[] = [
  ...BASE,
  ...INTENTS,
  ...STRIPE,
  ...SERVERS,
  ...RULES,
  ...BEATS,
];

/** The catalogue's entry at `path` of the file, or `undefined`. */
export function entryAt(path: string): CatalogEntry | undefined {
  return CATALOG.find((entry) => entry.path === path);
}

/** `IN_FLIGHT_LIMIT` -> `inFlightLimit`: the file may hold a setting flat under this name. */
export function camelCase(env: string): string {
  return env.toLowerCase().replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
