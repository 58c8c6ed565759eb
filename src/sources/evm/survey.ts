/**
 * Looks at every endpoint before anything is read: is it this chain, does it have the block at our
 * cursor, how far is it. What an endpoint serves can change under its address: another network, a
 * test chain that was reset (case B38).
 */
import type { ChainSettings } from "../../core/settings.ts";
import type { ChainRow } from "../../store/evm-chain.ts";
import type { Endpoint } from "./endpoints.ts";
import { faultOf } from "./endpoints.ts";
import { headerCall } from "./read-range.ts";
import { valueOf } from "./rpc.ts";
import { RpcError } from "./rpc-errors.ts";
import { readHeader } from "./wire.ts";
import type { Header } from "./wire.ts";

/** An endpoint that may be read from. */
export interface Usable {
  readonly endpoint: Endpoint;
  readonly genesis: Header;
  readonly head: Header;
  /** The newest final block, by the configured finality. */
  readonly final: Header;
}

/** An endpoint that may not. */
export interface Unusable {
  readonly endpoint: Endpoint;
  readonly state: "behind" | "failing" | "aside";
  readonly reason: string;
  /** It speaks of another chain, or of another past: set when that is why. */
  readonly foreign: boolean;
  readonly error: RpcError | null;
}

/** What a look at the endpoints showed. */
export interface Survey {
  /** Those that rest come last. */
  readonly usable: readonly Usable[];
  readonly unusable: readonly Unusable[];
}

/** Asks all endpoints at once. */
export async function survey(
  chain: ChainSettings,
  endpoints: readonly Endpoint[],
  input: { readonly known: ChainRow; readonly nowMs: number; readonly signal?: AbortSignal },
): Promise<Survey> {
  const looks = await Promise.all(
    endpoints.map(async (endpoint): Promise<Usable | Unusable> => {
      try {
        return await look(chain, endpoint, input);
      } catch (error) {
        input.signal?.throwIfAborted();
        return unusable(endpoint, faultOf(error));
      }
    }),
  );
  const usable = looks.filter((one): one is Usable => "final" in one);
  const rested = (one: Usable): number => (one.endpoint.restUntilMs > input.nowMs ? 1 : 0);
  return {
    usable: usable.toSorted((a, b) => rested(a) - rested(b) || b.final.number - a.final.number),
    unusable: looks.filter((one): one is Unusable => "state" in one),
  };
}

function unusable(endpoint: Endpoint, error: RpcError): Unusable {
  const state = error.fault === "lagging" ? "behind" : "failing";
  return { endpoint, state, reason: error.message, foreign: false, error };
}

async function look(
  chain: ChainSettings,
  endpoint: Endpoint,
  input: { readonly known: ChainRow; readonly signal?: AbortSignal },
): Promise<Usable | Unusable> {
  const { known, signal } = input;
  const { finality } = chain;
  const calls = [
    { method: "eth_chainId", params: [] },
    headerCall(0),
    headerCall("latest"),
    headerCall(typeof finality === "number" ? "latest" : finality),
    ...(known.final === null ? [] : [headerCall(known.final.number)]),
  ];
  const [id, first, newest, tagged, cursor] = await endpoint.rpc.batch(calls, signal);
  const foreign = foreignId(chain, endpoint, valueOf(id));
  if (foreign !== null) return foreign;
  const genesis = needed(readHeader(valueOf(first)), "block 0");
  const head = needed(readHeader(valueOf(newest)), "the newest block");
  const past = otherPast(endpoint, known, genesis, cursor === undefined ? null : valueOf(cursor));
  if (past !== null) return past;
  const final =
    typeof finality === "number"
      ? await blockBelow(endpoint, head, finality, signal)
      : finalOf(tagged, finality);
  return { endpoint, genesis, head, final };
}

function needed(header: Header | null, what: string): Header {
  if (header === null) throw new RpcError("lagging", `${what} is not there`);
  return header;
}

function foreignId(chain: ChainSettings, endpoint: Endpoint, value: unknown): Unusable | null {
  const served = `eip155:${String(Number(value))}`;
  if (served === chain.chainId) return null;
  const reason = `it serves ${served} and not ${chain.chainId}`;
  return { endpoint, state: "aside", reason, foreign: true, error: null };
}

function otherPast(
  endpoint: Endpoint,
  known: ChainRow,
  genesis: Header,
  cursor: unknown,
): Unusable | null {
  const aside = (reason: string): Unusable => {
    return { endpoint, state: "aside", reason, foreign: true, error: null };
  };
  if (known.genesisHash !== null && known.genesisHash !== genesis.hash) {
    return aside(`its block 0 is ${genesis.hash} and not ${known.genesisHash}: another chain`);
  }
  if (known.final === null) return null;
  const there = readHeader(cursor);
  const number = String(known.final.number);
  if (there === null) {
    const reason = `it does not have block ${number}, which was read as final`;
    return { endpoint, state: "behind", reason, foreign: false, error: null };
  }
  if (there.hash === known.final.hash) return null;
  return aside(
    `its block ${number} is ${there.hash} and was read as ${known.final.hash}: ` +
      "a reorganisation deeper than finality, or a chain that was reset",
  );
}

function finalOf(answer: Parameters<typeof valueOf>[0], tag: string): Header {
  try {
    const header = readHeader(valueOf(answer));
    if (header !== null) return header;
  } catch (error) {
    const fault = faultOf(error);
    if (fault.fault === "rate_limit" || fault.fault === "unreachable") throw fault;
    throw new RpcError(
      "unsupported",
      `it does not know the block tag "${tag}" (${fault.message}): ` +
        "set chains.finality to a number of blocks",
    );
  }
  throw new RpcError(
    "unsupported",
    `it has no ${tag} block: set chains.finality to a number of blocks`,
  );
}

async function blockBelow(
  endpoint: Endpoint,
  head: Header,
  depth: number,
  signal?: AbortSignal,
): Promise<Header> {
  const number = Math.max(0, head.number - depth);
  if (number === head.number) return head;
  const [answer] = await endpoint.rpc.batch([headerCall(number)], signal);
  return needed(readHeader(valueOf(answer)), `block ${String(number)}`);
}
