import type { Settings } from "../core/settings.ts";
import type { SendOutcome } from "../alert/send-outcome.ts";
import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

/** Sends one test message to a hook; given only when the user asked for it. */
export type SendTest = (hook: "slack" | "slack_critical", url: string) => Promise<SendOutcome>;

// The form of Slack's own incoming webhooks; stand-ins and gateways look different.
const SLACK_HOOK = /^https:\/\/hooks\.slack\.com\/(?:services|workflows|triggers)\/\S+$/;

/** The hooks' form, and with `sendTest` whether a message arrives. */
export async function checkSlack(settings: Settings, sendTest: SendTest | null): Promise<Check[]> {
  const { slackWebhookUrl, slackCriticalWebhookUrl } = settings;
  const hooks = [
    { hook: "slack", name: "SLACK_WEBHOOK_URL", url: slackWebhookUrl },
    { hook: "slack_critical", name: "SLACK_CRITICAL_WEBHOOK_URL", url: slackCriticalWebhookUrl },
  ] as const;
  const checks: Check[] = [];
  for (const { hook, name, url } of hooks) {
    if (url === null) continue;
    checks.push(checkForm(name, url));
    if (sendTest === null) continue;
    const advice = "make a new incoming webhook and set its address";
    checks.push(outcomeCheck(name, await sendTest(hook, url), advice));
  }
  if (settings.slackSigningSecret !== null) {
    const where = "the Slack app's Request URL must be https://YOUR_HOST/slack/actions";
    checks.push(fine("SLACK_SIGNING_SECRET", "alerts carry buttons", where));
  }
  if (slackWebhookUrl !== null || slackCriticalWebhookUrl !== null) return checks;
  const named = [
    ...(settings.webhook === null ? [] : ["the webhook"]),
    ...(settings.pagerDuty === null ? [] : ["PagerDuty"]),
  ];
  const others = named.length === 0 ? "" : `, beside ${named.join(" and ")}`;
  return [
    ...checks,
    told("Slack", named.length === 0 ? "warning" : "remark", {
      seen: "SLACK_WEBHOOK_URL is not set",
      meaning: `alerts go to the log alone${others}`,
      advice: "add an incoming webhook in Slack and set its address",
    }),
  ];
}

function checkForm(name: string, url: string): Check {
  if (SLACK_HOOK.test(url)) return fine(name, "has the form of a Slack hook");
  return told(name, "remark", {
    seen: `points to ${new URL(url).host}, which is not Slack itself`,
    meaning: "a gateway or a stand-in has to pass the message on",
    advice: "check it with `tallyd doctor --send-test`",
  });
}

/** What became of a test message. */
export function outcomeCheck(name: string, outcome: SendOutcome, advice: string): Check {
  if (outcome.kind === "sent") return fine(`${name} test`, "the test message was accepted");
  const reason = "reason" in outcome ? `: ${outcome.reason}` : "";
  const error = new Error(`${outcome.kind}${reason}`);
  return unreadable(`${name} test`, error, advice);
}
