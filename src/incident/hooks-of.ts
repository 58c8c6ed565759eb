import type { RouteInput } from "../alert/route.ts";

/** Which Slack hooks there are. The same address twice is one: two senders would break its rate. */
export function hooksOf(settings: {
  readonly slackWebhookUrl: string | null;
  readonly slackCriticalWebhookUrl: string | null;
}): RouteInput["hooks"] {
  const { slackWebhookUrl, slackCriticalWebhookUrl } = settings;
  const two = slackCriticalWebhookUrl !== null && slackCriticalWebhookUrl !== slackWebhookUrl;
  return { slack: slackWebhookUrl !== null, slackCritical: two };
}
