/** Topics and filters of the events that are read. */
import { keccak256, stringToBytes } from "viem";

import type { ChainSettings } from "../../core/settings.ts";

/** `keccak256` of an event's signature. */
function topicOf(signature: string): string {
  return keccak256(stringToBytes(signature));
}

export const TRANSFER = topicOf("Transfer(address,address,uint256)");
export const AUTHORIZATION_USED = topicOf("AuthorizationUsed(address,bytes32)");
export const AUTHORIZATION_CANCELED = topicOf("AuthorizationCanceled(address,bytes32)");
export const TRANSFER_WITH_MEMO = topicOf("TransferWithMemo(address,address,uint256,bytes32)");

/** A filter of `eth_getLogs` without its range. */
export interface LogFilter {
  readonly address: readonly string[];
  readonly topics: readonly (null | string | readonly string[])[];
}

// Nodes take 1,000 of either; half of that leaves room for stricter ones.
const ADDRESSES_MAX = 50;
const TOPICS_MAX = 500;

/** An address as a topic spells it. */
export function padded(address: string): string {
  return `0x${address.slice(2).padStart(64, "0")}`;
}

/** The address in a topic. */
export function addressOf(topic: string): string {
  return `0x${topic.slice(-40)}`;
}

/** Addresses whose transfers are read. */
export function watched(chain: Pick<ChainSettings, "payers" | "payees">): readonly string[] {
  return [...new Set([...chain.payers, ...chain.payees])];
}

/** Contracts whose logs are read. */
export function contractsOf(chain: Pick<ChainSettings, "tokens" | "otherTokens">): string[] {
  return [...chain.tokens, ...chain.otherTokens].map((token) => token.address);
}

function chunks(values: readonly string[], size: number): string[][] {
  const parts: string[][] = [];
  for (let at = 0; at < values.length; at += size) parts.push(values.slice(at, at + size));
  return parts;
}

function filters(
  contracts: readonly string[],
  topics: readonly string[],
  build: (part: readonly string[]) => LogFilter["topics"],
): LogFilter[] {
  return chunks(contracts, ADDRESSES_MAX).flatMap((address) =>
    chunks(topics.map(padded), TOPICS_MAX).map((part) => ({ address, topics: build(part) })),
  );
}

/** Transfers from and to the watched addresses, and what became of the payers' authorizations. */
export function transferFilters(chain: ChainSettings): LogFilter[] {
  const contracts = contractsOf(chain);
  const addresses = watched(chain);
  const events = chain.mpp === null ? [TRANSFER] : [TRANSFER, TRANSFER_WITH_MEMO];
  return [
    ...filters(contracts, addresses, (part) => [events, part]),
    ...filters(contracts, addresses, (part) => [events, null, part]),
    ...authorizationFilters(chain, chain.payers),
  ];
}

/** What became of authorizations of these addresses. */
export function authorizationFilters(
  chain: Pick<ChainSettings, "tokens" | "otherTokens">,
  authorizers: readonly string[],
): LogFilter[] {
  const events = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED];
  return filters(contractsOf(chain), authorizers, (part) => [events, part]);
}

/** Does the filter take this log? The order of topics is the event's. */
export function takes(
  filter: LogFilter,
  log: { readonly address: string; readonly topics: readonly string[] },
): boolean {
  if (!filter.address.includes(log.address)) return false;
  return filter.topics.every((wanted, place) => {
    if (wanted === null) return true;
    const topic = log.topics[place];
    return (
      topic !== undefined &&
      (typeof wanted === "string" ? wanted === topic : wanted.includes(topic))
    );
  });
}
