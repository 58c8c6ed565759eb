/**
 * What an endpoint's refusal means. Vendors answer the same trouble in many ways, and a wrong guess
 * either loops for ever or takes "too much asked" for "nothing there" (case B38). The sentences are
 * those of the vendors' documentation and of issues about them.
 */

/** What kind of refusal it is. */
export type RpcFault =
  /** The range or the result is too large: ask for less. */
  | "too_large"
  /** The node does not have the block (yet). */
  | "lagging"
  /** Too many requests: wait, and ask for the same. */
  | "rate_limit"
  /** The key or the plan does not allow it. */
  | "refused"
  /** The node does not know the method, the tag or batches. */
  | "unsupported"
  /** No answer, or a gateway's. */
  | "unreachable"
  /** An answer that is none. */
  | "broken";

/** A refusal, in the endpoint's words. */
export class RpcError extends Error {
  readonly fault: RpcFault;
  /** Blocks that the endpoint says would work, both ends included; `null`: it said none. */
  readonly suggested: { readonly from: number; readonly to: number } | null;
  readonly retryAfterMs: number | null;
  /** The endpoint that is to blame, set by whoever asked it; `null`: nobody knows. */
  endpoint: string | null = null;

  constructor(
    fault: RpcFault,
    message: string,
    rest: {
      readonly suggested?: { readonly from: number; readonly to: number } | null;
      readonly retryAfterMs?: number | null;
    } = {},
  ) {
    super(message);
    this.name = "RpcError";
    this.fault = fault;
    this.suggested = rest.suggested ?? null;
    this.retryAfterMs = rest.retryAfterMs ?? null;
  }
}

/** Any of these phrases, in any case. */
function phrases(...parts: readonly string[]): RegExp {
  return new RegExp(parts.join("|"), "i");
}

// In this order: a rate limit may speak of a "limit", and a lagging node of a "range".
const SENTENCES: readonly (readonly [RpcFault, RegExp])[] = [
  [
    "rate_limit",
    phrases(
      ...["rate.?limit", "too many requests", "request limit", "compute units", "throughput"],
      ...["capacity", "exceeded.*per second", "daily request", "credits"],
    ),
  ],
  [
    "lagging",
    phrases(
      ...["beyond (the )?(current )?head", "past (the )?head", "unknown block", "block not found"],
      ...["header not found", "(block|blockhash).*(not found|unknown)", "after last accepted"],
      ...["not yet available", "greater than.*(latest|head)"],
    ),
  ],
  [
    "too_large",
    phrases(
      ...["block range", "range (is )?too", "too (wide|large|big|many results)", "limited to"],
      ...["limit(ed)? the query", "more than \\d+ (results|logs)", "logs matched", "response size"],
      ...["(max|exceeds?).*(results|range|limit|logs|size|blocks)", "result window"],
      ...["query timeout", "timed? ?out", "up to a [\\d,]+ block", "blocks? per request"],
      ...["free ?tier", "upgrade"],
    ),
  ],
  [
    "unreachable",
    phrases(
      ...["no backend", "bad gateway", "service unavailable", "temporarily", "overloaded"],
      "internal error",
    ),
  ],
  [
    "refused",
    phrases(
      ...["unauthori[sz]ed", "forbidden", "api key", "authenticate", "permission", "project id"],
      ...["not allowed", "access denied"],
    ),
  ],
  [
    "unsupported",
    phrases(
      ...["method not (found|supported)", "does not exist", "unsupported", "batch"],
      ...["invalid (block )?(tag|argument)", "not available", "unknown (tag|method)"],
      "invalid request",
    ),
  ],
];

/** The kinds that JSON-RPC and vendors give codes to, where the sentence says nothing. */
const CODES: Readonly<Record<number, RpcFault>> = {
  [-32007]: "rate_limit",
  [-32029]: "rate_limit",
  [-32097]: "rate_limit",
  [-32614]: "too_large",
  [-32601]: "unsupported",
  [-32700]: "unsupported",
  [-32005]: "too_large",
};

const SUGGESTION = /\[?\s*(0x[0-9a-f]+|\d+)\s*[,-]\s*(0x[0-9a-f]+|\d+)\s*\]?\s*\.?\s*$/i;
const SHOULD_WORK = /should work:?\s*\[\s*(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)\s*\]/i;
// What is shown of a foreign message.
const MESSAGE_CHARS_MAX = 300;

/** Reads an error object of JSON-RPC. */
export function rpcErrorOf(error: unknown): RpcError {
  const { code, message } = parts(error);
  const fault =
    SENTENCES.find(([, sentence]) => sentence.test(message))?.[0] ?? CODES[code] ?? "broken";
  const text = `${message.slice(0, MESSAGE_CHARS_MAX)} (${String(code)})`;
  return new RpcError(fault, text, { suggested: suggestedRange(message) });
}

/** Reads a status of HTTP that is no success; `body` is what came with it. */
export function httpErrorOf(status: number, body: string, retryAfter: string | null): RpcError {
  const text = `HTTP ${String(status)} ${body.slice(0, MESSAGE_CHARS_MAX)}`.trim();
  const seconds = Number(retryAfter ?? "");
  const retryAfterMs = retryAfter !== null && seconds > 0 ? seconds * 1_000 : null;
  if (status === 429) return new RpcError("rate_limit", text, { retryAfterMs });
  if (status === 401 || status === 403) return new RpcError("refused", text);
  if (status === 413) {
    return new RpcError("too_large", text, { suggested: suggestedRange(body) });
  }
  if (status >= 500) return new RpcError("unreachable", text, { retryAfterMs });
  // Some gateways answer 400 with the error of JSON-RPC inside.
  const fault = SENTENCES.find(([, sentence]) => sentence.test(body))?.[0] ?? "broken";
  return new RpcError(fault, text, { suggested: suggestedRange(body) });
}

function parts(error: unknown): { readonly code: number; readonly message: string } {
  if (typeof error !== "object" || error === null) return { code: 0, message: String(error) };
  const code = "code" in error && typeof error.code === "number" ? error.code : 0;
  const message = "message" in error && typeof error.message === "string" ? error.message : "";
  return { code, message };
}

function suggestedRange(message: string): { from: number; to: number } | null {
  const found =
    SHOULD_WORK.exec(message) ?? /range\s+(\d+)-(\d+)/i.exec(message) ?? SUGGESTION.exec(message);
  const [from, to] = [Number(found?.[1] ?? NaN), Number(found?.[2] ?? NaN)];
  // Inverted and negative suggestions have been seen.
  return Number.isSafeInteger(from) && Number.isSafeInteger(to) && from >= 0 && from <= to
    ? { from, to }
    : null;
}
