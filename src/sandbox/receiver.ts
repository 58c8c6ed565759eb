/** What the stand-ins for programs at the end of a way out share: a server and its faults. */
import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * How requests are answered.
 * - `ok`: by the stand-in's own rules
 * - `stored_503`, `lost_response`: kept by those rules, then 503, or the connection is destroyed
 * - `hang`: kept nowhere, never answered
 * - `redirect`: 307 to `redirectTo`
 * - a number: that status, nothing kept
 */
export type ReceiverMode = "ok" | "stored_503" | "lost_response" | "hang" | "redirect" | number;

/** A request as it came and was answered; status 0 when it was not. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly status: number;
}

/** An answer of the stand-in's own rules. */
export interface ReceiverAnswer {
  readonly status: number;
  readonly body: string;
}

/** Steers a stand-in. */
export interface ReceiverControl {
  mode: ReceiverMode;
  /** How many requests the mode lasts before it is `ok` again; Infinity by default. */
  modeCount: number;
  /** Seconds in `retry-after` of a 429; null: no such header. */
  retryAfter: number | null;
  redirectTo: string;
  /** Oldest first; bounded. */
  readonly requests: readonly ReceivedRequest[];
}

/** A running stand-in. */
export interface Receiver {
  readonly url: string;
  readonly control: ReceiverControl;
  readonly close: () => Promise<void>;
}

/** Requests kept; a test that makes more is out of control. */
const KEPT_MAX = 50_000;
/** PagerDuty's limit of one event, and more than any message of a webhook. */
const BODY_BYTES_MAX = 512 * 1024;

/** Starts a stand-in whose rules are `judge`. Rejects when the port is taken. */
export async function startReceiver(
  judge: (request: Omit<ReceivedRequest, "status">) => ReceiverAnswer,
): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const control: ReceiverControl = {
    ...{ mode: "ok", modeCount: Infinity, retryAfter: 1, redirectTo: "http://127.0.0.1:9/" },
    requests,
  };
  const server = createServer((incoming, response) => {
    take(incoming, response).catch(() => response.destroy());
  });
  const take = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url: path = "/", headers } = incoming;
    const request = { method, path, headers, body: await readBody(incoming) };
    const mode = useMode(control);
    const stored = mode === "ok" || mode === "stored_503" || mode === "lost_response";
    const own = stored ? judge(request) : { status: 0, body: "" };
    const status = statusOf(mode, own.status);
    if (requests.length < KEPT_MAX) requests.push({ ...request, status });
    if (mode === "hang") return;
    if (mode === "lost_response") {
      response.destroy();
      return;
    }
    response.writeHead(status, headersOf(control, status));
    response.end(mode === "ok" ? own.body : "");
  };
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${String(port)}`,
    control,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function useMode(control: ReceiverControl): ReceiverMode {
  const { mode } = control;
  if (mode === "ok") return mode;
  control.modeCount -= 1;
  if (control.modeCount <= 0) {
    control.mode = "ok";
    control.modeCount = Infinity;
  }
  return mode;
}

function statusOf(mode: ReceiverMode, own: number): number {
  if (typeof mode === "number") return mode;
  if (mode === "redirect") return 307;
  if (mode === "stored_503") return 503;
  return mode === "ok" ? own : 0;
}

function headersOf(control: ReceiverControl, status: number): Record<string, string> {
  if (status === 307) return { location: control.redirectTo };
  if (status !== 429 || control.retryAfter === null) return {};
  return { "retry-after": String(control.retryAfter) };
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

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}
