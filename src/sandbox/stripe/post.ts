import { Agent, request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { Agent as SecureAgent, request as httpsRequest } from "node:https";

/** Sockets kept to receivers: enough to keep a fast one busy, few enough not to drown it. */
const SOCKETS_MAX = 32;
/** Bytes of a receiver's answer that are kept for the log. */
const ANSWER_BYTES_MAX = 2_048;

/** A receiver's answer; status 0 when there was none. */
export interface PostAnswer {
  readonly status: number;
  readonly body: string;
  readonly error: string | null;
}

/** Sends JSON with POST and never follows a redirect. */
export interface Poster {
  readonly post: (
    url: string,
    body: string,
    headers: Readonly<Record<string, string>>,
    timeoutMs: number,
  ) => Promise<PostAnswer>;
  readonly close: () => void;
}

function collect(response: IncomingMessage, done: (answer: PostAnswer) => void): void {
  let body = "";
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => {
    if (body.length < ANSWER_BYTES_MAX) body += chunk;
  });
  response.on("end", () => {
    done({ status: response.statusCode ?? 0, body, error: null });
  });
  response.on("error", (error) => {
    done({ status: 0, body, error: error.message });
  });
}

/** A poster with connections of its own. */
export function createPoster(): Poster {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX });
  const secureAgent = new SecureAgent({ keepAlive: true, maxSockets: SOCKETS_MAX });
  return {
    post: (url, body, headers, timeoutMs) =>
      new Promise((resolve) => {
        const secure = url.startsWith("https:");
        const send = secure ? httpsRequest : httpRequest;
        const request = send(url, {
          method: "POST",
          agent: secure ? secureAgent : agent,
          timeout: timeoutMs,
          headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
        });
        request.on("response", (response) => {
          collect(response, resolve);
        });
        request.on("timeout", () => {
          request.destroy(new Error("the receiver did not answer in time"));
        });
        request.on("error", (error) => {
          resolve({ status: 0, body: "", error: error.message });
        });
        request.end(body);
      }),
    close: () => {
      agent.destroy();
      secureAgent.destroy();
    },
  };
}
