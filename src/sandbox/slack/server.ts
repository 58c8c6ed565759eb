import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { blocksFault } from "./block-rules.ts";
import { createResponseUrls } from "./interactions.ts";
import type { ResponseUrls } from "./interactions.ts";

/**
 * How the catcher answers.
 * - `ok`: by Slack's rules
 * - `error_500`: nothing kept
 * - `stored_503`: kept, then 503 (delivered although it looks failed)
 * - `no_service_404`, `no_service_410`: the webhook was removed
 * - `archived_403`: `channel_is_archived`
 * - `hang`, `stored_hang`: never answered; kept nowhere, or kept
 * - `lost_response`: kept, then the connection is destroyed
 */
export type SlackMode =
  | "ok"
  | "error_500"
  | "stored_503"
  | "no_service_404"
  | "no_service_410"
  | "archived_403"
  | "hang"
  | "stored_hang"
  | "lost_response";

/** A message that was posted in the channel. `at` is in ms of the sandbox's clock. */
export interface SlackMessage {
  readonly at: number;
  readonly path: string;
  readonly text: string | null;
  readonly blocks: readonly unknown[];
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A request as it was answered; status 0 when it was not. */
export interface SlackRequest {
  readonly at: number;
  readonly path: string;
  readonly status: number;
  readonly answer: string;
  /** Why blocks were refused, for the test's eyes; Slack itself does not say. */
  readonly reason: string | null;
}

/** How the catcher is set up. */
export interface SlackSandboxOptions {
  readonly port?: number;
  readonly host?: string;
  /** Milliseconds; default the machine's clock. */
  readonly now?: () => number;
  /** Whether more than one message a second per webhook answers 429; default false. */
  readonly limited?: boolean;
}

/** Steers the catcher. */
export interface SlackControl {
  mode: SlackMode;
  /** How many requests the mode lasts before it is `ok` again; Infinity by default. */
  modeCount: number;
  limited: boolean;
  /** What stands in the channel, oldest first; bounded. */
  readonly messages: readonly SlackMessage[];
  readonly requests: readonly SlackRequest[];
  readonly clear: () => void;
}

/** A running catcher. */
export interface SlackSandbox {
  readonly url: string;
  readonly port: number;
  /** A webhook address on it. */
  readonly webhookUrl: string;
  readonly control: SlackControl;
  /** Where clicks are answered. */
  readonly responses: ResponseUrls;
  readonly close: () => Promise<void>;
}

// Messages and requests kept; a test that posts more is out of control.
const KEPT_MAX = 50_000;
/** Largest body read, far above fifty full blocks. */
const BODY_BYTES_MAX = 1024 * 1024;
/** Slack's limit for incoming webhooks: one message a second. */
const MESSAGE_INTERVAL_MS = 1_000;

const WEBHOOK_PATH = "/services/T00000000/B00000000/sandboxsandboxsandbox";

interface Verdict {
  readonly status: number;
  readonly answer: string;
  readonly reason: string | null;
  readonly payload: Readonly<Record<string, unknown>> | null;
  readonly headers: Readonly<Record<string, string>>;
}

function refuse(status: number, answer: string, reason: string | null = null): Verdict {
  return { status, answer, reason, payload: null, headers: {} };
}

function parsePayload(body: string): Readonly<Record<string, unknown>> | null {
  // The older form `payload=<json>` is still taken.
  const text = body.startsWith("payload=")
    ? (new URLSearchParams(body).get("payload") ?? "")
    : body;
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

const HUNG: readonly SlackMode[] = ["hang", "stored_hang"];
/** Slack's verdict on a body, whatever the mode. */
function judge(body: string): Verdict {
  const payload = parsePayload(body);
  if (payload === null) return refuse(400, "invalid_payload");
  const { text, blocks, attachments } = payload;
  const hasText = typeof text === "string" && text.trim() !== "";
  const hasBlocks = Array.isArray(blocks) && blocks.length > 0;
  if (blocks !== undefined) {
    const reason = blocksFault(blocks);
    if (reason !== null) return refuse(400, "invalid_blocks", reason);
  }
  if (!hasText && !hasBlocks && attachments === undefined) return refuse(400, "no_text");
  return { status: 200, answer: "ok", reason: null, payload, headers: {} };
}

const FIXED: Readonly<Partial<Record<SlackMode, Verdict>>> = {
  error_500: refuse(500, "internal_error"),
  no_service_404: refuse(404, "no_service"),
  no_service_410: refuse(410, "no_service"),
  archived_403: refuse(403, "channel_is_archived"),
};

class Channel implements SlackControl {
  mode: SlackMode = "ok";
  modeCount = Infinity;
  limited: boolean;
  readonly #now: () => number;
  readonly #lastAt = new Map<string, number>();
  #messages: SlackMessage[] = [];
  #requests: SlackRequest[] = [];

  constructor(options: SlackSandboxOptions) {
    this.#now = options.now ?? Date.now;
    this.limited = options.limited ?? false;
  }

  get messages(): readonly SlackMessage[] {
    return this.#messages;
  }

  get requests(): readonly SlackRequest[] {
    return this.#requests;
  }

  clear(): void {
    this.#messages = [];
    this.#requests = [];
    this.#lastAt.clear();
  }

  /** Takes a request: what to answer, and in which mode it is sent. */
  take(path: string, body: string): { verdict: Verdict; mode: SlackMode } {
    const mode = this.#useMode();
    const verdict = this.#decide(mode, path, body);
    if (verdict.payload !== null) this.#store(path, verdict.payload);
    const unanswered = HUNG.includes(mode) || mode === "lost_response";
    const at = this.#now();
    const { answer, reason } = verdict;
    const status = unanswered ? 0 : verdict.status;
    if (this.#requests.length < KEPT_MAX) this.#requests.push({ at, path, status, answer, reason });
    return { verdict, mode };
  }

  #useMode(): SlackMode {
    const mode = this.mode;
    if (mode === "ok") return mode;
    this.modeCount -= 1;
    if (this.modeCount <= 0) {
      this.mode = "ok";
      this.modeCount = Infinity;
    }
    return mode;
  }

  #decide(mode: SlackMode, path: string, body: string): Verdict {
    const fixed = FIXED[mode];
    if (fixed !== undefined) return fixed;
    if (mode === "hang") return refuse(0, "");
    const wait = this.#waitMs(path);
    if (wait > 0) {
      const seconds = String(Math.ceil(wait / MESSAGE_INTERVAL_MS));
      return { ...refuse(429, "rate_limited"), headers: { "retry-after": seconds } };
    }
    const verdict = judge(body);
    if (mode !== "stored_503" || verdict.payload === null) return verdict;
    return { ...verdict, status: 503, answer: "service_unavailable" };
  }

  #waitMs(path: string): number {
    if (!this.limited) return 0;
    const last = this.#lastAt.get(path);
    return last === undefined ? 0 : last + MESSAGE_INTERVAL_MS - this.#now();
  }

  #store(path: string, payload: Readonly<Record<string, unknown>>): void {
    const { text, blocks } = payload;
    const at = this.#now();
    this.#lastAt.set(path, at);
    if (this.#messages.length >= KEPT_MAX) return;
    this.#messages.push({
      at,
      path,
      text: typeof text === "string" ? text : null,
      blocks: Array.isArray(blocks) ? blocks : [],
      payload,
    });
  }
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) throw new RangeError("message too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function handle(
  channel: Channel,
  responses: ResponseUrls,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(incoming);
  const path = incoming.url ?? "/";
  if (path.startsWith("/actions/") && incoming.method === "POST") {
    const { status, answer } = responses.take(path, parsePayload(body));
    response.writeHead(status, { "content-type": "text/plain" }).end(answer);
    return;
  }
  if (incoming.method !== "POST" || !path.startsWith("/services/")) {
    response.writeHead(404, { "content-type": "text/plain" }).end("no_service");
    return;
  }
  const { verdict, mode } = channel.take(path, body);
  if (HUNG.includes(mode)) return;
  if (mode === "lost_response") {
    response.destroy();
    return;
  }
  response.writeHead(verdict.status, { "content-type": "text/plain", ...verdict.headers });
  response.end(verdict.answer);
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Starts a stand-in for Slack's incoming webhooks. Rejects when the port is taken. */
export async function startSlackSandbox(options: SlackSandboxOptions = {}): Promise<SlackSandbox> {
  const channel = new Channel(options);
  const responses = createResponseUrls();
  const server = createServer((incoming, response) => {
    handle(channel, responses, incoming, response).catch(() => {
      response.destroy();
    });
  });
  const host = options.host ?? "127.0.0.1";
  const port = await listen(server, options.port ?? 0, host);
  const url = `http://${host}:${String(port)}`;
  return {
    url,
    port,
    webhookUrl: `${url}${WEBHOOK_PATH}`,
    control: channel,
    responses,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
