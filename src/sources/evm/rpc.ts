/**
 * JSON-RPC over HTTP. Our own, because a statement about logs needs the head and the logs from the
 * same node: one HTTP request with a batch reaches one node, which a client that bundles calls at
 * will cannot promise (case B38).
 */
import { RpcError, httpErrorOf, rpcErrorOf } from "./rpc-errors.ts";

/** One call of a batch. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** The answer to one call. */
export type RpcAnswer =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: RpcError };

/** A way to one endpoint. */
export interface Rpc {
  /** Answers in the order of the calls. Throws RpcError when nothing of it was answered. */
  readonly batch: (calls: readonly RpcCall[], signal?: AbortSignal) => Promise<RpcAnswer[]>;
}

// A public node takes some seconds for a wide range; longer is a hung connection.
const TIMEOUT_MS = 30_000;
// Vendors end an answer at 150 MB at the latest; one block's receipts are all there is to ask for.
const BODY_BYTES_MAX = 160 * 1_048_576;
// Lists of logs can be had in smaller pieces: some ten thousand at once keep the memory small.
const LOGS_BYTES_MAX = 8 * 1_048_576;

/** Opens a way to an endpoint. `count` is told of every call. */
export function createRpc(url: string, count: (method: string) => void): Rpc {
  let bundles = true;
  return {
    batch: async (calls, signal) => {
      for (const { method } of calls) count(method);
      if (calls.length > 1 && bundles) {
        try {
          return await bundled(url, calls, signal);
        } catch (error) {
          if (!(error instanceof RpcError) || error.fault !== "unsupported") throw error;
          bundles = false;
        }
      }
      const answers: RpcAnswer[] = [];
      for (const call of calls) answers.push(...(await bundled(url, [call], signal)));
      return answers;
    },
  };
}

async function bundled(
  url: string,
  calls: readonly RpcCall[],
  signal: AbortSignal | undefined,
): Promise<RpcAnswer[]> {
  const wire = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
  const lists = calls.some((call) => call.method === "eth_getLogs");
  const bytesMax = lists ? LOGS_BYTES_MAX : BODY_BYTES_MAX;
  const body = await post(url, { wire: wire.length === 1 ? wire[0] : wire, bytesMax, signal });
  const parsed = parse(body);
  if (calls.length === 1 && !Array.isArray(parsed)) return [answerOf(parsed)];
  if (!Array.isArray(parsed)) {
    const answer = answerOf(parsed);
    // A whole batch that is refused by one object: rate limits, and nodes without batches.
    throw answer.ok
      ? new RpcError("unsupported", "a batch was answered by one object")
      : answer.error;
  }
  const byId = new Map(parsed.map((one: unknown) => [idOf(one), one]));
  return calls.map((_, id) => {
    const one = byId.get(id);
    return one === undefined
      ? { ok: false, error: new RpcError("broken", "a call of the batch was not answered") }
      : answerOf(one);
  });
}

async function post(
  url: string,
  request: {
    readonly wire: unknown;
    readonly bytesMax: number;
    readonly signal: AbortSignal | undefined;
  },
): Promise<string> {
  const { wire, bytesMax, signal } = request;
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(wire),
      // A redirect would carry the key to somebody else.
      redirect: "error",
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    const text = await limitedText(response, bytesMax);
    if (!response.ok) throw httpErrorOf(response.status, text, response.headers.get("retry-after"));
    return text;
  } catch (error) {
    if (error instanceof RpcError) throw error;
    signal?.throwIfAborted();
    // Messages of fetch name the address, which carries the key: only the cause's code is shown.
    throw new RpcError("unreachable", `no answer: ${causeOf(error)}`);
  }
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { cause } = error;
  if (typeof cause === "object" && cause !== null && "code" in cause) return String(cause.code);
  return error.name;
}

/** The body, as long as it stays within the limit: what is longer is not even kept. */
async function limitedText(response: Response, bytesMax: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    parts.push(part);
    bytes += part.length;
    // Leaving the loop closes the connection.
    if (bytes > bytesMax) {
      throw new RpcError("too_large", `an answer of more than ${String(bytesMax)} bytes`);
    }
  }
  return Buffer.concat(parts).toString("utf8");
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new RpcError("broken", `no JSON, ${String(body.length)} characters`);
  }
}

function idOf(one: unknown): number | null {
  if (typeof one !== "object" || one === null || !("id" in one)) return null;
  return typeof one.id === "number" ? one.id : null;
}

function answerOf(one: unknown): RpcAnswer {
  if (typeof one !== "object" || one === null) {
    return { ok: false, error: new RpcError("broken", "an answer is no object") };
  }
  if ("error" in one && one.error !== undefined && one.error !== null) {
    return { ok: false, error: rpcErrorOf(one.error) };
  }
  if (!("result" in one)) {
    return { ok: false, error: new RpcError("broken", "an answer has neither result nor error") };
  }
  return { ok: true, value: one.result };
}

/** The value of an answer. Throws its error. */
export function valueOf(answer: RpcAnswer | undefined): unknown {
  if (answer === undefined) throw new RpcError("broken", "a call was not answered");
  if (!answer.ok) throw answer.error;
  return answer.value;
}
