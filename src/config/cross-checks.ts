import { isIntentState } from "../core/states.ts";
import { getAt } from "./layers.ts";
import type { Layers } from "./layers.ts";
import type { CheckedSettings } from "./schema.ts";
import { yesNo } from "./values.ts";

// A shorter token on a reachable port can be guessed by trying.
const TOKEN_LENGTH_ADVISED = 16;

/** Is `host` an address that only this machine can reach? */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * Rules that concern several settings at once. They look at the raw values, so that they speak in
 * the same run as faults of single values.
 */
export function crossFaults(layers: Layers): string[] {
  return [
    ...adminFaults(layers),
    ...portFaults(layers),
    ...livemodeFaults(layers),
    ...stateFaults(layers),
    ...mappingFaults(layers),
    ...webhookFaults(layers),
  ];
}

function adminFaults({ raw }: Layers): string[] {
  const host = getAt(raw, "adminHost");
  if (typeof host !== "string" || isLoopback(host.trim())) return [];
  if (getAt(raw, "adminToken") !== undefined) return [];
  return [
    `ADMIN_TOKEN: saw nothing while ADMIN_HOST is ${JSON.stringify(host)}; ` +
      "allowed: a token, or an ADMIN_HOST that only this machine reaches (127.0.0.1)",
  ];
}

function portFaults({ raw }: Layers): string[] {
  const [open, admin] = [getAt(raw, "port") ?? 4242, getAt(raw, "adminPort") ?? 4243].map(Number);
  if (open !== admin || open === 0) return [];
  return [`ADMIN_PORT: saw ${String(admin)}, which is PORT too; allowed: two different ports`];
}

function livemodeFaults({ raw }: Layers): string[] {
  const key = getAt(raw, "stripe.apiKey");
  const wanted = yesNo.safeParse(getAt(raw, "stripe.livemode"));
  const mode = typeof key === "string" ? /^[rs]k_(live|test)_/.exec(key.trim())?.[1] : undefined;
  if (mode === undefined || !wanted.success || wanted.data === (mode === "live")) return [];
  return [
    `STRIPE_LIVEMODE: saw ${String(wanted.data)} while STRIPE_API_KEY is a ${mode} key; ` +
      `allowed: ${String(mode === "live")}, or a key of the other mode`,
  ];
}

function stateFaults({ raw }: Layers): string[] {
  const states = getAt(raw, "intents.states");
  if (typeof states !== "object" || states === null) return [];
  return Object.entries(states)
    .filter(([name, state]) => isIntentState(name) && state !== name)
    .map(
      ([name, state]) =>
        `intents.states.${name}: saw ${JSON.stringify(state)}; ` +
        `allowed: ${name} is one of tallyd's own names and means itself`,
    );
}

function mappingFaults({ raw }: Layers): string[] {
  if (getAt(raw, "intents.columns") !== undefined) return [];
  if (getAt(raw, "intents.write") === undefined) return [];
  return [
    "intents.write: saw columns to write while intents.columns is not given; " +
      "allowed: both, or neither (then the columns are found by name)",
  ];
}

/** An unsigned message proves nothing to its reader, and a key alone signs nothing. */
function webhookFaults({ raw }: Layers): string[] {
  const url = getAt(raw, "webhook.url");
  const secret = getAt(raw, "webhook.secret");
  if ((url === undefined) === (secret === undefined)) return [];
  const [missing, given] =
    url === undefined ? ["WEBHOOK_URL", "WEBHOOK_SECRET"] : ["WEBHOOK_SECRET", "WEBHOOK_URL"];
  return [`${missing}: saw nothing while ${given} is set; allowed: both, or neither`];
}

/** Live or test: as set, else the key's mode, else live unless a stand-in is addressed. */
export function livemodeOf(stripe: CheckedSettings["stripe"]): boolean {
  if (stripe.livemode !== null) return stripe.livemode;
  if (stripe.apiKey !== null) return stripe.apiKey.includes("k_live_");
  return stripe.apiBase === null;
}

/** Allowed, but most likely not meant. */
export function hints(settings: CheckedSettings): string[] {
  const found: string[] = [];
  const { adminToken, slack, stripe } = settings;
  if (adminToken !== null && adminToken.length < TOKEN_LENGTH_ADVISED) {
    found.push(
      `ADMIN_TOKEN: only ${String(adminToken.length)} characters; ` +
        `${String(TOKEN_LENGTH_ADVISED)} or more cannot be guessed`,
    );
  }
  for (const hook of [slack.webhookUrl, slack.criticalWebhookUrl]) {
    if (hook?.startsWith("http:") === true && !isLoopback(new URL(hook).hostname)) {
      found.push("SLACK_WEBHOOK_URL: http:// sends alerts unencrypted; Slack's hooks are https://");
    }
  }
  const { url } = settings.webhook;
  if (url?.startsWith("http:") === true && !isLoopback(new URL(url).hostname)) {
    found.push("WEBHOOK_URL: http:// sends alerts unencrypted; use https://");
  }
  if (slack.signingSecret !== null && slack.webhookUrl === null) {
    found.push("SLACK_SIGNING_SECRET: set without SLACK_WEBHOOK_URL; no message carries buttons");
  }
  if (slack.webhookUrl === null && slack.criticalWebhookUrl !== null) {
    found.push("SLACK_CRITICAL_WEBHOOK_URL: set without SLACK_WEBHOOK_URL; warnings go to the log");
  }
  if (stripe.apiKey === null && stripe.accounts.length > 0) {
    found.push("STRIPE_ACCOUNTS: set without STRIPE_API_KEY; only their webhooks are seen");
  }
  return found;
}
