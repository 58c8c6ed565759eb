/**
 * Words of the chain rail in their one canonical spelling: addresses, hashes and nonces in lower
 * case with `0x`, networks as CAIP-2, a charge as `eip155:8453:0xHASH:LOG`. Other spellings of one
 * hash have slipped past checks for repeats before (pitfall: `0X`, no prefix, mixed case).
 */

/** CAIP-2 id of an EVM chain, e.g. `eip155:8453`. */
export const CHAIN_ID = /^eip155:[1-9]\d{0,19}$/;

/** Names that x402 version 1 used for networks, and what CAIP-2 calls them. */
const NETWORK_NAMES: Readonly<Record<string, string>> = {
  ethereum: "eip155:1",
  base: "eip155:8453",
  "base-sepolia": "eip155:84532",
  polygon: "eip155:137",
  "polygon-amoy": "eip155:80002",
  avalanche: "eip155:43114",
  "avalanche-fuji": "eip155:43113",
  sei: "eip155:1329",
  "sei-testnet": "eip155:1328",
  iotex: "eip155:4689",
  peaq: "eip155:3338",
  abstract: "eip155:2741",
  "abstract-testnet": "eip155:11124",
};

/** The CAIP-2 id that a row's network means; `null`: none that is known. */
export function canonicalNetwork(text: string): string | null {
  const plain = text.trim().toLowerCase();
  if (CHAIN_ID.test(plain)) return plain;
  if (/^[1-9]\d{0,19}$/.test(plain)) return `eip155:${plain}`;
  return NETWORK_NAMES[plain] ?? null;
}

/** Is `scope` a chain's? */
export function isChainScope(scope: string): boolean {
  return CHAIN_ID.test(scope);
}

function hex(text: string, digits: number): string | null {
  const plain = text.trim().toLowerCase().replace(/^0x/, "");
  return plain.length === digits && /^[0-9a-f]+$/.test(plain) ? `0x${plain}` : null;
}

/** An address of 20 bytes, also out of a CAIP-10 or CAIP-19 id; `null`: it is none. */
export function canonicalAddress(text: string): string | null {
  const last = text.trim().split(/[:/]/).at(-1) ?? "";
  return hex(last, 40);
}

/** A hash or an EIP-3009 nonce of 32 bytes; `null`: it is none. */
export function canonicalHash(text: string): string | null {
  return hex(text, 64);
}

/** Where a charge id points on a chain. */
export interface ChainCharge {
  /** `null`: the spelling names no chain. */
  readonly scope: string | null;
  readonly txHash: string;
  /** `null`: the transaction alone. */
  readonly logIndex: number | null;
}

const CHARGE =
  /^(?:(eip155:[1-9]\d*)[:/])?((?:0x)?[0-9a-f]{64})(?:[:#/-](?:log[:=]?)?(0x[0-9a-f]+|\d+))?$/i;

/**
 * Reads a charge id in any spelling: `0xHASH`, `0xHASH:LOG`, `0xHASH#LOG` or
 * `eip155:ID:0xHASH:LOG`.
 */
export function parseChainCharge(text: string): ChainCharge | null {
  const found = CHARGE.exec(text.trim());
  const hash = found?.[2] === undefined ? null : canonicalHash(found[2]);
  if (found === null || hash === null) return null;
  const log = found[3];
  return {
    scope: found[1]?.toLowerCase() ?? null,
    txHash: hash,
    logIndex: log === undefined ? null : Number(log),
  };
}

/** `eip155:8453:0xHASH:LOG`, the identity of a charge on chain. */
export function chainChargeId(scope: string, txHash: string, logIndex: number): string {
  return `${scope}:${txHash}:${String(logIndex)}`;
}

/** How a row's charge id is kept: the whole identity with a log index, else the hash alone. */
export function canonicalChainCharge(text: string, scope: string): string | null {
  const charge = parseChainCharge(text);
  if (charge === null) return null;
  if (charge.logIndex === null) return charge.txHash;
  return chainChargeId(charge.scope ?? scope, charge.txHash, charge.logIndex);
}
