import type { IncomingMessage, ServerResponse } from "node:http";

/** Largest body taken: far above any real request, so that a broken caller cannot fill memory. */
const BODY_BYTES_MAX = 2 * 1024 * 1024;

/** An answer on its way out. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads a request's body as text. Rejects when it is too long or breaks off. */
export function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > BODY_BYTES_MAX) reject(new RangeError("request body too large"));
      else chunks.push(chunk);
    });
    request.on("end", () => {
      resolve(Buffer.concat(chunks).toString("utf8"));
    });
    request.on("error", reject);
  });
}

/** Sends an answer. */
export function send(response: ServerResponse, reply: Reply): void {
  response.writeHead(reply.status, {
    "content-type": "application/json",
    ...reply.headers,
    "content-length": String(Buffer.byteLength(reply.body)),
  });
  response.end(reply.body);
}

/** Sends the head and half of the body, then breaks the connection off. */
export function sendCut(response: ServerResponse, reply: Reply): void {
  const bytes = Buffer.from(reply.body);
  response.writeHead(reply.status, {
    "content-type": "application/json",
    ...reply.headers,
    "content-length": String(bytes.length),
  });
  response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => {
    response.destroy();
  });
}

/** Waits real milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
