/** What the chain says of an authorization. The nonce is the truth; a server's word is not. */
import { LedgerError } from "./errors.ts";
import { field, textField } from "./stripe-client.ts";

/** An endpoint of the chain (EIP-1193), such as a client of viem's. */
export interface ChainProvider {
  request(call: { readonly method: string; readonly params?: unknown }): Promise<unknown>;
}

/** An authorization to look at. */
export interface NonceMark {
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly nonce: string;
  /** Unix seconds. */
  readonly validBefore: number;
  /** The block below which it cannot have been used. */
  readonly fromBlock: number;
}

/** What became of it. */
export type NonceState =
  | { readonly kind: "used"; readonly transaction: string }
  /** Taken back by its payer, in a final block. */
  | { readonly kind: "canceled"; readonly transaction: string }
  /** Not used, and it can never be any more. */
  | { readonly kind: "dead" }
  /** Not used; final enough or not, it may still be. */
  | { readonly kind: "alive" };

/** Blocks at whose height the end of an authorization counts as final. */
export type Finality = "safe" | "finalized";

// keccak-256 of the signatures, as the contract's interface (EIP-3009) fixes them.
const STATE_SELECTOR = "0xe94a0102";
const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const CANCELED = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";

// Most endpoints answer this many blocks at once; more of them cut the answer or refuse.
const RANGE = 2_000;
// More than two days on a chain of two-second blocks: authorizations live for minutes.
const RANGES_MAX = 50;

/**
 * Looks at every endpoint. One that knows of the use is believed, since it can show the log; that
 * it is dead must be the word of all of them. Throws `unknown` when one cannot be read.
 */
export async function lookAtNonce(
  chains: readonly ChainProvider[],
  mark: NonceMark,
  finality: Finality,
): Promise<NonceState> {
  const states: NonceState[] = [];
  for (const chain of chains) {
    const state = await lookAtOne(chain, mark, finality);
    if (state.kind === "used" || state.kind === "canceled") return state;
    states.push(state);
  }
  const allDead = states.length > 0 && states.every((state) => state.kind === "dead");
  return { kind: allDead ? "dead" : "alive" };
}

/** The newest block's number; throws `unknown` when the endpoint is of another chain. */
export async function newestBlock(chain: ChainProvider, network: string): Promise<number> {
  const chainId = Number(await ask(chain, "eth_chainId", []));
  if (`eip155:${chainId}` === network) return Number(await ask(chain, "eth_blockNumber", []));
  throw new LedgerError("unknown", `an endpoint for ${network} serves eip155:${chainId}`);
}

async function lookAtOne(
  chain: ChainProvider,
  mark: NonceMark,
  finality: Finality,
): Promise<NonceState> {
  const newest = await newestBlock(chain, mark.network);
  const spent = await isSpent(chain, mark, "latest");
  const use = spent ? await findUse(chain, mark, newest) : null;
  if (use?.kind === "used") return { kind: "used", transaction: use.transaction };
  const block = await ask(chain, "eth_getBlockByNumber", [finality, false]);
  const number = textField(block, "number");
  if (use !== null) {
    // A reorganisation could take the cancellation out again, and leave an authorization that pays.
    const isFinal = number !== null && use.block <= Number(number);
    return isFinal ? { kind: "canceled", transaction: use.transaction } : { kind: "alive" };
  }
  // Its own time decides: no block after the end can hold the authorization.
  const seconds = Number(textField(block, "timestamp") ?? "0");
  if (number === null || seconds < mark.validBefore) return { kind: "alive" };
  return (await isSpent(chain, mark, number)) ? { kind: "alive" } : { kind: "dead" };
}

/** Used or canceled: the contract does not tell them apart, its logs do. */
async function isSpent(chain: ChainProvider, mark: NonceMark, block: string): Promise<boolean> {
  const data = `${STATE_SELECTOR}${word(mark.payer).slice(2)}${mark.nonce.slice(2)}`;
  const answer = await ask(chain, "eth_call", [{ to: mark.asset, data }, block]);
  // An address without code answers nothing, which must never count as "not used".
  if (typeof answer === "string" && /^0x[0-9a-f]{64}$/i.test(answer)) return BigInt(answer) !== 0n;
  throw new LedgerError("unknown", `${mark.asset} on ${mark.network} does not tell of nonces`);
}

interface Use {
  readonly kind: "used" | "canceled";
  readonly transaction: string;
  readonly block: number;
}

async function findUse(chain: ChainProvider, mark: NonceMark, newest: number): Promise<Use> {
  for (let part = 0; part < RANGES_MAX; part += 1) {
    const from = mark.fromBlock + part * RANGE;
    if (from > newest) break;
    const range = { fromBlock: hex(from), toBlock: hex(Math.min(from + RANGE - 1, newest)) };
    const topics = [[USED, CANCELED], word(mark.payer), mark.nonce];
    const logs = await ask(chain, "eth_getLogs", [{ address: mark.asset, topics, ...range }]);
    const [log] = Array.isArray(logs) ? (logs as unknown[]) : [];
    const transaction = textField(log, "transactionHash");
    const topic = (field(log, "topics") as readonly unknown[] | undefined)?.[0];
    const block = Number(textField(log, "blockNumber") ?? Number.NaN);
    if (transaction !== null) {
      return { kind: topic === CANCELED ? "canceled" : "used", transaction, block };
    }
  }
  throw new LedgerError("unknown", `nonce ${mark.nonce} is spent, and no log tells by what`);
}

async function ask(
  chain: ChainProvider,
  method: string,
  params: readonly unknown[],
): Promise<unknown> {
  try {
    return await chain.request({ method, params });
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new LedgerError("unknown", `the chain could not be asked (${method}): ${why ?? ""}`, {
      cause: error,
    });
  }
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}

/** An address as a word of 32 bytes. */
function word(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}
