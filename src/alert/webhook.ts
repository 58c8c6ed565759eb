/**
 * The signed webhook, by the Standard Webhooks specification
 * (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md).
 */
import { createHmac } from "node:crypto";

import type { Clock } from "../core/clock.ts";
import type { WebhookSettings } from "../core/settings.ts";
import type { ProgramMessage, ProgramSend } from "./payload.ts";
import { post } from "./post.ts";
import type { Answer } from "./post.ts";
import type { SendOutcome } from "./send-outcome.ts";
import { networkOutcome, waitOf } from "./send-outcome.ts";
import { clean, clip } from "./text.ts";

const SECRET_PREFIX = "whsec_";
const REASON_CHARS_MAX = 200;
const SECOND_MS = 1_000;

/** A sender for one address. Neither the address nor a key appears in an outcome. */
export function createWebhookSend(settings: WebhookSettings, clock: Clock): ProgramSend {
  const keys = settings.secrets.map((secret) =>
    Buffer.from(secret.slice(SECRET_PREFIX.length), "base64"),
  );
  return async (message) => {
    const body = JSON.stringify(message.event);
    // The time of this attempt: a repeat must pass the reader's time window too.
    const timestamp = String(Math.floor(clock.now().getTime() / SECOND_MS));
    const id = webhookId(message);
    const signed = `${id}.${timestamp}.${body}`;
    // One signature per key: the reader takes the one that it can check.
    const signatures = keys.map(
      (key) => `v1,${createHmac("sha256", key).update(signed, "utf8").digest("base64")}`,
    );
    const headers = {
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": signatures.join(" "),
    };
    try {
      return outcomeOf(await post(settings.url, { headers, body }));
    } catch (error) {
      if (error instanceof Error) return networkOutcome(error);
      throw error;
    }
  };
}

/** The same for every repeat of a message, so that its reader can drop a second one. */
function webhookId({ messageId, createdAt }: ProgramMessage): string {
  return `msg_${String(createdAt.getTime())}_${String(messageId)}`;
}

function outcomeOf({ status, body, retryAfter }: Answer): SendOutcome {
  const reason = `HTTP ${String(status)} ${clip(clean(body), REASON_CHARS_MAX)}`.trim();
  if (status >= 200 && status < 300) return { kind: "sent" };
  if (status === 429) return { kind: "rate_limited", retryAfterMs: waitOf(retryAfter) };
  // Gone is the specification's word for "do not send here any more".
  if (status === 410) return { kind: "dead", reason };
  if (status >= 300 && status < 400) {
    return { kind: "dead", reason: `HTTP ${String(status)}, a redirect, which is not followed` };
  }
  // The address or its guard is at fault, whatever the message: nothing of it was taken.
  if ([401, 403, 404, 405].includes(status)) return { kind: "unreachable", reason };
  return { kind: "uncertain", reason };
}
