import type { ChainToken } from "../core/settings.ts";

interface KnownToken {
  readonly symbol: string;
  readonly chainId: string;
  readonly address: string;
  readonly decimals: number;
  /** A bridged twin: another contract under the same name, which is not the token. */
  readonly bridged: boolean;
}

function native(chainId: string, address: string): KnownToken {
  return { symbol: "USDC", chainId, address: address.toLowerCase(), decimals: 6, bridged: false };
}

function bridged(chainId: string, symbol: string, address: string): KnownToken {
  return { symbol, chainId, address: address.toLowerCase(), decimals: 6, bridged: true };
}

/**
 * USDC by chain, from Circle's list of contract addresses, and its bridged twins, which only count
 * as another token (case B40).
 */
const KNOWN: readonly KnownToken[] = [
  native("eip155:1", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
  native("eip155:10", "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85"),
  native("eip155:137", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
  native("eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
  native("eip155:42161", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831"),
  native("eip155:43114", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E"),
  native("eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
  bridged("eip155:10", "USDC.e", "0x7F5c764cBc14f9669B88837ca1490cCa17c31607"),
  bridged("eip155:137", "USDC.e", "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174"),
  bridged("eip155:8453", "USDbC", "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA"),
  bridged("eip155:42161", "USDC.e", "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8"),
  bridged("eip155:43114", "USDC.e", "0xA7D7079b0FEaD91F3e65f86E8915Cb59c1a4C664"),
];

/** The token that a symbol means on a chain; `undefined`: not known there. */
export function knownToken(chainId: string, symbol: string): ChainToken | undefined {
  const wanted = symbol.toUpperCase();
  const found = KNOWN.find(
    (token) => token.chainId === chainId && !token.bridged && token.symbol === wanted,
  );
  return found === undefined ? undefined : plain(found);
}

/** Chains on which a symbol is known, for messages. */
export function chainsOf(symbol: string): string[] {
  return KNOWN.filter((token) => !token.bridged && token.symbol === symbol.toUpperCase()).map(
    (token) => token.chainId,
  );
}

/** The bridged twins on a chain, without those that are configured as tokens of their own. */
export function bridgedTwins(chainId: string, tokens: readonly ChainToken[]): ChainToken[] {
  return KNOWN.filter(
    (known) =>
      known.chainId === chainId &&
      known.bridged &&
      tokens.some((token) => token.symbol === "USDC") &&
      !tokens.some((token) => token.address === known.address),
  ).map(plain);
}

function plain({ address, symbol, decimals }: KnownToken): ChainToken {
  return { address, symbol, decimals };
}
