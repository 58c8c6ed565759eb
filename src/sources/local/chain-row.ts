import { canonicalAddress, canonicalChainCharge, canonicalHash } from "../../core/chain.ts";
import { challengeMarks } from "./challenge.ts";
import type { IntentRow } from "../../core/intent.ts";
import type { ChainSettings, ChainToken } from "../../core/settings.ts";

type ChainFields = Pick<
  IntentRow,
  | "scope"
  | "currency"
  | "chargeId"
  | "network"
  | "asset"
  | "payer"
  | "payee"
  | "nonce"
  | "paymentId"
  | "challengeNonce"
  | "challengeMemo"
>;

/**
 * The fields of a row on chain in their one spelling: addresses, hashes and nonces in lower case
 * with `0x`, the asset as the token's address, and the currency as that token's symbol (a row may
 * name either). `response` is the stored answer as text: a settlement that was answered with an
 * error may still carry the hash of its transaction, and that answer is no failure (case B34).
 */
export function canonicalChainFields<Row extends ChainFields>(
  row: Row,
  input: { readonly chains: readonly ChainSettings[]; readonly response: string | null },
): Row {
  const chain = input.chains.find((one) => one.chainId === row.scope);
  const tokens = chain === undefined ? [] : [...chain.tokens, ...chain.otherTokens];
  const token = tokenOf(row, tokens);
  const stored = row.chargeId ?? hashOfResponse(input.response);
  const realm = chain?.mpp?.realm;
  const challenge =
    realm === undefined || row.paymentId === null ? null : challengeMarks(row.paymentId, realm);
  return {
    ...row,
    challengeNonce: challenge?.nonce ?? null,
    challengeMemo: challenge?.memo ?? null,
    network: row.scope,
    asset: token?.address ?? addressOf(row.asset),
    currency: token?.symbol.toLowerCase() ?? row.currency,
    payer: addressOf(row.payer),
    payee: addressOf(row.payee),
    nonce: row.nonce === null ? null : (canonicalHash(row.nonce) ?? row.nonce.toLowerCase()),
    chargeId: stored === null ? null : (canonicalChainCharge(stored, row.scope) ?? stored),
  };
}

/** By the asset; else by a currency that is an address. A symbol alone names no contract. */
function tokenOf(row: ChainFields, tokens: readonly ChainToken[]): ChainToken | undefined {
  const named = row.asset ?? (canonicalAddress(row.currency) === null ? null : row.currency);
  if (named === null) return undefined;
  const address = canonicalAddress(named);
  if (address !== null) return tokens.find((token) => token.address === address);
  return tokens.find((token) => token.symbol.toLowerCase() === named.trim().toLowerCase());
}

function addressOf(text: string | null): string | null {
  return text === null ? null : (canonicalAddress(text) ?? text);
}

/** The hash in x402's settlement answer, in any of its usual names; `null`: there is none. */
function hashOfResponse(response: string | null): string | null {
  if (response === null) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(response);
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null) return null;
  const named = new Map(Object.entries(parsed));
  for (const name of ["transaction", "transactionHash", "txHash", "tx_hash"]) {
    const value: unknown = named.get(name);
    if (typeof value === "string" && canonicalHash(value) !== null) return value;
  }
  return null;
}
