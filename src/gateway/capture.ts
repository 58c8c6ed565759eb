/** Holds an answer back until it is stored, and sends stored ones. */
import type { ClientRequest, OutgoingHttpHeaders, ServerResponse } from "node:http";

import type { Problem } from "./problem.ts";
import type { Answer } from "./store.ts";

/** What is kept of an answer, in bytes. */
export interface AnswerLimits {
  readonly answerBytesMax: number;
  readonly answerHeaderBytesMax: number;
}

// Of this connection and moment; or of a session, which a replay must not hand out again.
const NOT_KEPT: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "transfer-encoding", "content-length", "date", "trailer"],
  ...["upgrade", "proxy-authenticate", "set-cookie"],
]);

type Write = (chunk: Uint8Array) => boolean;

/**
 * Holds the answer back until `onEnd` is through. `onEnd` gets it as it was written (its body
 * `null` when it was too large to hold and went out already) and may put a problem in its place.
 */
export function holdAnswer(
  response: ServerResponse,
  limits: AnswerLimits,
  told: {
    /** Must not reject. */
    readonly onEnd: (answer: Answer) => Promise<Problem | null>;
    readonly onFault: (error: unknown) => void;
  },
): void {
  const { writeHead, write, end, flushHeaders } = response;
  const send: Write = (chunk) => {
    // Node writes the head along with the first chunk, through this very method.
    Object.assign(response, { writeHead, flushHeaders });
    return write.call(response, chunk, "utf8");
  };
  const body = bodyOf(limits.answerBytesMax, send);
  let ended = false;
  let hasHead = false;
  // As Node does before the first byte: who stands behind may have put something over writeHead.
  const sayHead = (): void => {
    if (!hasHead) response.writeHead(response.statusCode);
  };
  const finish = async (): Promise<void> => {
    const held = body.held();
    const said = headOf(response);
    const headers = keptHeaders(response.getHeaders());
    const small = Buffer.byteLength(JSON.stringify(headers)) <= limits.answerHeaderBytesMax;
    const kept = small ? held : null;
    const instead = await told.onEnd({ status: said.status, headers, body: kept });
    Object.assign(response, { writeHead, write, end, flushHeaders });
    restoreHead(response, said);
    if (instead !== null && held !== null) {
      sendProblem(response, instead);
      return;
    }
    response.end(held ?? undefined);
  };
  Object.assign(response, {
    writeHead: (status: number, ...rest: readonly unknown[]) => {
      hasHead = true;
      setHead(response, status, rest);
      return response;
    },
    flushHeaders: () => undefined,
    write: (chunk: unknown, ...rest: readonly unknown[]) => {
      callBack(rest);
      sayHead();
      return ended || body.add(chunk, rest);
    },
    end: (...parts: readonly unknown[]) => {
      if (ended) return response;
      ended = true;
      sayHead();
      if (typeof parts[0] !== "function") body.add(parts[0], parts.slice(1));
      callBack(parts);
      finish().catch((error: unknown) => {
        // Such as a status that Node refuses: there is no answer to send.
        told.onFault(error);
        response.destroy();
      });
      return response;
    },
  });
}

interface HeldBody {
  /** `false`: the client reads slower than this is written. */
  readonly add: (chunk: unknown, rest: readonly unknown[]) => boolean;
  /** `null`: it was too large, and went out. */
  readonly held: () => Buffer | null;
}

function bodyOf(bytesMax: number, send: Write): HeldBody {
  let chunks: Buffer[] | null = [];
  let bytes = 0;
  return {
    add: (chunk, rest) => {
      const data = bufferOf(chunk, rest[0]);
      if (data === null) return true;
      if (chunks === null) return send(data);
      chunks.push(data);
      bytes += data.length;
      if (bytes <= bytesMax) return true;
      const all = Buffer.concat(chunks);
      chunks = null;
      return send(all);
    },
    held: () => (chunks === null ? null : Buffer.concat(chunks)),
  };
}

function bufferOf(chunk: unknown, encoding: unknown): Buffer | null {
  if (typeof chunk === "string") {
    return Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
  }
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : null;
}

function callBack(parts: readonly unknown[]): void {
  const last = parts.at(-1);
  if (typeof last === "function") queueMicrotask(last as () => void);
}

interface Head {
  readonly status: number;
  readonly message: string;
  readonly headers: readonly (readonly [string, number | string | readonly string[]])[];
}

function headOf(response: ServerResponse): Head {
  // As they were spelled; the types of Node know the method of requests only.
  const spelled = response as ServerResponse & Pick<ClientRequest, "getRawHeaderNames">;
  const headers = spelled.getRawHeaderNames().flatMap((name) => {
    const value = response.getHeader(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return { status: response.statusCode, message: response.statusMessage, headers };
}

/**
 * What was said stands: a handler that answers and then calls `next` or throws meets an error
 * handler that sees nothing sent yet, and writes its own head over this one.
 */
function restoreHead(response: ServerResponse, { status, message, headers }: Head): void {
  if (response.headersSent) return;
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  for (const [name, value] of headers) response.setHeader(name, value);
  Object.assign(response, { statusCode: status, statusMessage: message });
}

/** What `writeHead` says: status, perhaps its words, headers as an object or as a flat list. */
function setHead(response: ServerResponse, status: number, rest: readonly unknown[]): void {
  response.statusCode = status;
  if (typeof rest[0] === "string") response.statusMessage = rest[0];
  const headers = rest.find((one) => typeof one === "object" && one !== null);
  if (headers === undefined) return;
  const pairs = Array.isArray(headers) ? pairsOf(headers) : Object.entries(headers);
  for (const [name, value] of pairs) {
    if (value !== undefined) response.setHeader(name, value as string | readonly string[]);
  }
}

function pairsOf(list: readonly unknown[]): (readonly [string, unknown])[] {
  return list.flatMap((name, index) =>
    index % 2 === 0 && typeof name === "string" ? [[name, list[index + 1]] as const] : [],
  );
}

function keptHeaders(headers: OutgoingHttpHeaders): Answer["headers"] {
  const kept: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || NOT_KEPT.has(name.toLowerCase())) continue;
    kept[name.toLowerCase()] = typeof value === "number" ? String(value) : value;
  }
  return kept;
}

/** Sends a stored answer; a header says that it is one. */
export function replayAnswer(response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.status;
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
  response.setHeader("Idempotent-Replayed", "true");
  response.end(answer.body ?? undefined);
}

/** Answers with a refusal; what others set for another answer is taken back. */
export function sendProblem(response: ServerResponse, problem: Problem): void {
  if (response.headersSent) return;
  for (const name of ["etag", "content-length", "payment-required"]) response.removeHeader(name);
  const { code, status, title, detail, retryAfterS } = problem;
  response.statusCode = status;
  response.setHeader("Content-Type", "application/problem+json");
  response.setHeader("Cache-Control", "no-store");
  if (retryAfterS !== null) response.setHeader("Retry-After", String(retryAfterS));
  response.end(JSON.stringify({ type: `urn:tallyd:gateway:${code}`, title, status, detail, code }));
}
