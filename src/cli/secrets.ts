import type { Settings } from "../core/settings.ts";

/** Every value of the settings that must never be printed, passwords inside URLs included. */
export function secretsOf(settings: Settings): string[] {
  const urls: readonly (string | null)[] = [settings.databaseUrl, settings.intents.databaseUrl];
  const values = [
    settings.stripe.apiKey,
    ...settings.stripe.webhookSecrets,
    settings.slackWebhookUrl,
    settings.slackCriticalWebhookUrl,
    settings.slackSigningSecret,
    settings.webhook?.url ?? null,
    ...(settings.webhook?.secrets ?? []),
    settings.pagerDuty?.routingKey ?? null,
    settings.heartbeatUrl,
    settings.adminToken,
    ...urls.flatMap(passwordsOf),
  ];
  // Longer ones first, so that a secret inside another does not leave a rest.
  return values
    .filter((value): value is string => value !== null && value !== "")
    .sort((a, b) => b.length - a.length);
}

/** A password may appear as it stands in the URL or decoded. */
function passwordsOf(url: string | null): string[] {
  if (url === null || !URL.canParse(url)) return [];
  const { password } = new URL(url);
  if (password === "") return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
