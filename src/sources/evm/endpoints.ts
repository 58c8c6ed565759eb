/** The endpoints of a chain: which one to ask, and which to leave alone for a while. */
import type { ChainSettings } from "../../core/settings.ts";
import { createRpc } from "./rpc.ts";
import type { Rpc } from "./rpc.ts";
import { RpcError } from "./rpc-errors.ts";

/** One endpoint, with what this process remembers of it. */
export interface Endpoint {
  /** Host and place in the list: the address itself carries a key. */
  readonly name: string;
  readonly rpc: Rpc;
  /** Blocks of a range that it takes; grows and shrinks with its answers. */
  rangeBlocks: number;
  /** Not asked before, milliseconds since 1970, unless nobody else is left. */
  restUntilMs: number;
  /** Faults in a row. */
  faults: number;
}

// Where a range begins to grow: most plans take it, and one answer is a few megabytes at most.
const RANGE_START = 2_000;
const RANGE_MAX = 50_000;
// A fault costs a minute, then more, up to an hour: a node that lies is not asked often.
const REST_MS = 60_000;
const REST_MAX_MS = 3_600_000;

/** Makes the endpoints of a chain. `count` is told of every call. */
export function openEndpoints(
  chain: Pick<ChainSettings, "rpcUrls">,
  count: (method: string) => void,
): Endpoint[] {
  return chain.rpcUrls.map((url, index) => ({
    name: `${new URL(url).host}#${String(index + 1)}`,
    rpc: createRpc(url, count),
    rangeBlocks: RANGE_START,
    restUntilMs: 0,
    faults: 0,
  }));
}

/** A range went well: the next may be wider. */
export function grow(endpoint: Endpoint): void {
  endpoint.rangeBlocks = Math.min(endpoint.rangeBlocks * 2, RANGE_MAX);
}

/**
 * Too much was asked: less, or what the endpoint suggests if that is less. Never the same again.
 */
export function shrink(endpoint: Endpoint, asked: number, error: RpcError): void {
  const { suggested } = error;
  const offered = suggested === null ? asked : suggested.to - suggested.from + 1;
  const half = Math.max(1, Math.floor(asked / 2));
  endpoint.rangeBlocks = offered < asked ? Math.max(1, Math.min(offered, half * 2 - 1)) : half;
}

/** It did not answer, or answered wrongly: others go first for a while. */
export function rest(endpoint: Endpoint, nowMs: number, retryAfterMs: number | null): void {
  endpoint.faults += 1;
  const wait = Math.min(REST_MS * 2 ** Math.min(endpoint.faults - 1, 6), REST_MAX_MS);
  endpoint.restUntilMs = nowMs + Math.max(retryAfterMs ?? 0, wait);
}

/** What it was asked for is read: the next fault is a first one again. */
export function recovered(endpoint: Endpoint): void {
  endpoint.faults = 0;
}

/** The fault of an error; anything that is no RpcError is thrown on. */
export function faultOf(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  throw error;
}
