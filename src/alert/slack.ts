/** Slack's incoming webhook, and what its answers mean. The only importer of `@slack/webhook`. */
import type { FetchFunction } from "@slack/webhook";
import {
  IncomingWebhook,
  IncomingWebhookHTTPError,
  IncomingWebhookRequestError,
} from "@slack/webhook";

import type { SlackBlock } from "./document.ts";

/** What became of one sending. */
export type SendOutcome =
  | { readonly kind: "sent" }
  | { readonly kind: "rate_limited"; readonly retryAfterMs: number }
  /** The hook is gone: waiting does not help, a person has to give a new one. */
  | { readonly kind: "dead"; readonly reason: string }
  /** The message is at fault, not the hook. */
  | { readonly kind: "refused"; readonly reason: string }
  /** It certainly did not arrive. */
  | { readonly kind: "unreachable"; readonly reason: string }
  /** It may have arrived: the answer was a server error, or none came. */
  | { readonly kind: "uncertain"; readonly reason: string };

export interface SlackMessage {
  readonly text: string;
  /** Left out: text only. */
  readonly blocks?: readonly SlackBlock[];
}

/** Sends one message; never throws for what Slack or the network does. */
export type SlackSend = (message: SlackMessage) => Promise<SendOutcome>;

// Slack answers in well under a second; after ten a stop of the daemon should not wait longer.
const SEND_TIMEOUT_MS = 10_000;
// Slack always names a delay with 429; a proxy in between may not.
const RETRY_AFTER_DEFAULT_MS = 30_000;
// An hour of silence is the most that is believed; then it is asked again.
const RETRY_AFTER_MAX_MS = 3_600_000;
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
  if (error instanceof IncomingWebhookRequestError) return requestOutcome(error.original);
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

function waitOf(retryAfter: string | null): number {
  if (retryAfter === null || !/^\d{1,9}$/.test(retryAfter)) return RETRY_AFTER_DEFAULT_MS;
  return Math.min(Number(retryAfter) * 1_000, RETRY_AFTER_MAX_MS);
}

// Codes of Node and undici that come before a byte of the request was written.
const BEFORE_SENDING: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "ERR_INVALID_URL",
]);

function requestOutcome(error: Error): SendOutcome {
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
  if (cause.message.includes("redirect")) {
    return { kind: "dead", reason: "the hook answers with a redirect" };
  }
  // fetch refuses some ports by itself, without a code.
  return BEFORE_SENDING.has(code) || cause.message === "bad port"
    ? { kind: "unreachable", reason: code }
    : { kind: "uncertain", reason: code };
}
