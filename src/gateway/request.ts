/** What of a request makes it this request: method, address and body. */
import type { IncomingMessage } from "node:http";

import { canonicalJson, sha256 } from "./canonical.ts";
import type { ProblemCode } from "./problem.ts";

/** A request as Express (4 and 5) hands it on; a plain one of Node works where it has no body. */
export type GatewayRequest = IncomingMessage & {
  readonly originalUrl?: string;
  /** What a body parser in front made of it. */
  readonly body?: unknown;
};

/** Sizes that are accepted, in bytes. */
export interface RequestLimits {
  readonly headerBytesMax: number;
  readonly requestBytesMax: number;
}

/** A value, or why there is none. */
export type Read<T> = { readonly value: T } | { readonly fault: ProblemCode };

/** The request without its payment, as canonical text. */
export function readContent(request: GatewayRequest, limits: RequestLimits): Read<string> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > limits.requestBytesMax) return { fault: "body_too_large" };
  const sent = announced > 0 || request.headers["transfer-encoding"] !== undefined;
  // A body that nobody parsed is not known here, and a parser behind could not read it again.
  if (sent && (request.body === undefined || !request.readableEnded)) {
    return { fault: "body_unreadable" };
  }
  const address = request.originalUrl ?? request.url ?? "";
  const text = bodyText(request.body);
  if (text === null) return { fault: "body_unreadable" };
  const bytes = request.body instanceof Uint8Array ? request.body.length : Buffer.byteLength(text);
  if (bytes > limits.requestBytesMax) return { fault: "body_too_large" };
  return { value: canonicalJson([request.method ?? "", address, text]) };
}

function bodyText(body: unknown): string | null {
  if (body instanceof Uint8Array) return sha256(body);
  try {
    return canonicalJson(body);
  } catch {
    return null;
  }
}

/** One header as text; of several with one name the first, as Node joins or drops them. */
export function headerOf(request: GatewayRequest, name: string): string | null {
  const value = request.headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}
