/** Slack's incoming webhook, and what its answers mean. The only importer of `@slack/webhook`. */
import type { FetchFunction } from "@slack/webhook";
import {
  IncomingWebhook,
  IncomingWebhookHTTPError,
  IncomingWebhookRequestError,
} from "@slack/webhook";

import type { SlackBlock } from "./document.ts";
import type { SendOutcome } from "./send-outcome.ts";
import { networkOutcome, waitOf } from "./send-outcome.ts";

export interface SlackMessage {
  readonly text: string;
  /** Left out: text only. */
  readonly blocks?: readonly SlackBlock[];
}

/** Sends one message; never throws for what Slack or the network does. */
export type SlackSend = (message: SlackMessage) => Promise<SendOutcome>;

// Slack answers in well under a second; after ten a stop of the daemon should not wait longer.
const SEND_TIMEOUT_MS = 10_000;
const REASON_CHARS_MAX = 200;

/** A sender for one hook. The address is a secret and appears in no outcome. */
export function createSlackSend(url: string): SlackSend {
  return async (message) => {
    let retryAfter: string | null = null;
    // The client's errors do not carry headers, and Retry-After is one.
    const fetchNoting: FetchFunction = async (address, init) => {
      const response = await fetch(address, init);
      retryAfter = response.headers.get("retry-after");
      return response;
    };
    const hook = new IncomingWebhook(url, {
      fetch: fetchNoting,
      timeout: SEND_TIMEOUT_MS,
      // The outbox repeats, and knows what may be repeated.
      retryConfig: { retries: 0 },
    });
    try {
      await hook.send({
        text: message.text,
        ...(message.blocks === undefined ? {} : { blocks: [...message.blocks] }),
        unfurl_links: false,
        unfurl_media: false,
      });
      return { kind: "sent" };
    } catch (error) {
      return outcomeOf(error, retryAfter);
    }
  };
}

function outcomeOf(error: unknown, retryAfter: string | null): SendOutcome {
  if (error instanceof IncomingWebhookHTTPError) {
    return statusOutcome(error.statusCode, error.body, retryAfter);
  }
  if (error instanceof IncomingWebhookRequestError) return networkOutcome(error.original);
  throw error;
}

function statusOutcome(status: number, body: string, retryAfter: string | null): SendOutcome {
  const reason = `HTTP ${String(status)} ${body.trim().slice(0, REASON_CHARS_MAX)}`.trim();
  if (status === 429) return { kind: "rate_limited", retryAfterMs: waitOf(retryAfter) };
  // 404 no_service, channel_not_found; 410 channel_is_archived; 403 invalid_token and its kin.
  if (status === 401 || status === 403 || status === 404 || status === 410) {
    return { kind: "dead", reason };
  }
  // A server error may come after the message was posted, and so may the end of a wait.
  if (status >= 500 || status === 408) return { kind: "uncertain", reason };
  return { kind: "refused", reason };
}
