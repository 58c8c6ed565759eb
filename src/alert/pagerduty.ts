/** PagerDuty's Events API v2 (developer.pagerduty.com, "Send an Alert Event"). */
import type { PagerDutySettings } from "../core/settings.ts";
import type { ProgramMessage, ProgramSend } from "./payload.ts";
import { post } from "./post.ts";
import type { Answer } from "./post.ts";
import type { SendOutcome } from "./send-outcome.ts";
import { networkOutcome, waitOf } from "./send-outcome.ts";
import { clean, clip } from "./text.ts";

const REASON_CHARS_MAX = 200;

/** A sender for one service. Its key appears in no outcome. */
export function createPagerDutySend(settings: PagerDutySettings): ProgramSend {
  const { routingKey, apiBase } = settings;
  return async (message) => {
    const body = JSON.stringify({
      routing_key: routingKey,
      dedup_key: digestKey(message),
      ...message.event,
    });
    try {
      const answer = await post(`${apiBase}/v2/enqueue`, { headers: {}, body });
      return outcomeOf({ ...answer, body: answer.body.replaceAll(routingKey, "…") });
    } catch (error) {
      if (error instanceof Error) return networkOutcome(error);
      throw error;
    }
  };
}

/** A digest is about no incident, and stays one alert however often it is repeated. */
function digestKey({ messageId, createdAt }: ProgramMessage): string {
  return `tallyd-digest-${String(createdAt.getTime())}-${String(messageId)}`;
}

function outcomeOf({ status, body, retryAfter }: Answer): SendOutcome {
  const reason = `HTTP ${String(status)} ${clip(clean(body), REASON_CHARS_MAX)}`.trim();
  // 202 means that the event is queued; PagerDuty tells no more.
  if (status === 202) return { kind: "sent" };
  if (status === 429) return { kind: "rate_limited", retryAfterMs: waitOf(retryAfter) };
  // 400 is final. It is about the key, and so about every message, or about this event.
  if (status === 400) return { kind: body.includes("routing_key") ? "dead" : "refused", reason };
  if (status === 401 || status === 403) return { kind: "dead", reason };
  if (status >= 300 && status < 400) {
    return { kind: "dead", reason: `HTTP ${String(status)}, a redirect, which is not followed` };
  }
  return { kind: "uncertain", reason };
}
