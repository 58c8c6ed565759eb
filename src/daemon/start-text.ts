import type { Settings } from "../core/settings.ts";
import { stripeScopes } from "../core/scope.ts";

/** What the start found out. */
export interface StartFacts {
  readonly version: string;
  readonly ports: { readonly webhooks: number; readonly admin: number };
  /** Without its password. */
  readonly database: string;
  /** Kind of the team's relation, or that it is out of reach. */
  readonly rows: string;
}

/** The block that `tallyd run` prints at its start: what is watched and where, no secrets. */
export function startText(settings: Settings, facts: StartFacts): string {
  const { stripe } = settings;
  const rows: readonly (readonly [string, string])[] = [
    ["database", facts.database],
    ["intents", `${settings.intents.table} (${facts.rows})`],
    ["stripe", `${stripeScopes(stripe).join(", ")} ${readingText(settings)}`],
    ["resolve", RESOLVE_TEXT[settings.resolve]],
    ["alerts", alertsText(settings)],
    [
      "webhooks",
      `http://${hostText(settings.host)}:${String(facts.ports.webhooks)}/webhooks/stripe`,
    ],
    ["admin", `http://${hostText(settings.adminHost)}:${String(facts.ports.admin)}/readyz`],
  ];
  const lines = rows.map(([name, text]) => `  ${name.padEnd(9)} ${text}`);
  return [`tallyd ${facts.version} watches:`, ...lines].join("\n");
}

const RESOLVE_TEXT: Readonly<Record<Settings["resolve"], string>> = {
  write: "write: ambiguous intents are settled from proof",
  suggest: "suggest: decisions are reported, nothing is written",
  off: "off: ambiguous intents are left alone",
};

function alertsText({ slackWebhookUrl, webhook, pagerDuty }: Settings): string {
  const first = slackWebhookUrl === null ? "to this log" : "to Slack";
  const more = [webhook === null ? "" : "a webhook", pagerDuty === null ? "" : "PagerDuty"];
  return [first, ...more.filter((name) => name !== "")].join(", ");
}

function readingText({ stripe }: Settings): string {
  const secrets = stripe.webhookSecrets.length;
  const hooks = secrets === 0 ? "no webhook secret" : `${String(secrets)} webhook secret(s)`;
  const reads = stripe.apiKey === null ? "webhooks only, no key to read with" : "read by key";
  return `(${reads}, ${hooks})`;
}

function hostText(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
