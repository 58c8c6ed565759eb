/**
 * Direct looks at a chain: what became of one authorization, or of one transaction. Asked right
 * before something is concluded, and stored like what a scan finds.
 */
import type { Pool } from "pg";
import { decodeFunctionResult, encodeFunctionData, parseAbi } from "viem";

import { UnreadableError } from "../../core/errors.ts";
import type { ChainSettings } from "../../core/settings.ts";
import { getChain } from "../../store/evm-chain.ts";
import type { BlockRef } from "../../store/evm-chain.ts";
import { saveTransaction } from "../../store/evm-logs.ts";
import type { Endpoint } from "./endpoints.ts";
import { faultOf, grow, shrink } from "./endpoints.ts";
import { askLogs, headerCall, readHeaders } from "./read-range.ts";
import { valueOf } from "./rpc.ts";
import { RpcError } from "./rpc-errors.ts";
import { codeOf } from "./scan.ts";
import type { ChainReader, ScanDeps } from "./scan.ts";
import { blockAt } from "./start-block.ts";
import { storeFound } from "./store-range.ts";
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, padded } from "./topics.ts";
import type { LogFilter } from "./topics.ts";
import { readHeader, readReceipt } from "./wire.ts";
import type { Header, RawLog, Receipt } from "./wire.ts";

const ABI = parseAbi([
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
]);

type Hex = `0x${string}`;

/** What the contract says about an authorization. */
export interface NonceLook {
  /** `unused` also when its use lies above finality: then a pending charge tells of it. */
  readonly state: "used" | "canceled" | "unused";
  /** The final block that this holds for. */
  readonly block: { readonly number: bigint; readonly hash: string; readonly time: Date };
  /** Endpoints that agreed. */
  readonly endpoints: number;
}

/** Whose authorization, and when it can have been used. */
export interface NonceQuestion {
  /** `null`: any of the configured tokens. */
  readonly token: string | null;
  readonly authorizer: string;
  readonly nonce: string;
  readonly from: Date;
  readonly to: Date;
}

/**
 * Asks every endpoint for the state of a nonce. A nonce that is unused at the head was never used
 * before, so no state of the past is needed. Throws UnreadableError when none can say, or when they
 * disagree (case B38).
 */
export async function lookNonce(
  deps: ScanDeps,
  reader: ChainReader,
  question: NonceQuestion,
): Promise<NonceLook> {
  const final = await finalBlock(deps.pool, reader.chain);
  const tokens = tokensOf(reader.chain, question.token);
  const said = await ask(reader, (endpoint) => stateOf(endpoint, final, tokens, question));
  const answers = said.map((one) => one.value);
  const used = answers.filter((set) => set.length > 0).length;
  if (used > 0 && used < answers.length) {
    const names = said.map((one) => one.endpoint.name).join(" and ");
    throw new UnreadableError("shape", `${names} disagree about nonce ${question.nonce}`);
  }
  const block = { number: BigInt(final.number), hash: final.hash, time: final.time };
  const [first] = said;
  if (first === undefined || used === 0) {
    return { state: "unused", block, endpoints: answers.length };
  }
  const state = await findUse(deps, reader, { endpoint: first.endpoint, final, question });
  return { state, block, endpoints: answers.length };
}

function tokensOf(chain: ChainSettings, token: string | null): string[] {
  return token === null ? chain.tokens.map((one) => one.address) : [token];
}

async function finalBlock(pool: Pool, chain: ChainSettings): Promise<BlockRef> {
  const { final, stoppedReason } = await getChain(pool, chain.chainId);
  if (stoppedReason !== null) throw new UnreadableError("shape", stoppedReason);
  if (final === null) throw new UnreadableError("network", `${chain.chainId} was never read`);
  return final;
}

/** The tokens at which the nonce is used or canceled. */
async function stateOf(
  endpoint: Endpoint,
  final: BlockRef,
  tokens: readonly string[],
  question: NonceQuestion,
): Promise<string[]> {
  const args = [question.authorizer as Hex, question.nonce as Hex] as const;
  const data = encodeFunctionData({ abi: ABI, functionName: "authorizationState", args });
  const [head, ...states] = await endpoint.rpc.batch([
    headerCall(final.number),
    ...tokens.map((to) => ({ method: "eth_call", params: [{ to, data }, "latest"] })),
  ]);
  sameBlock(readHeader(valueOf(head)), final);
  return tokens.filter((_, index) => {
    const answer = valueOf(states[index]);
    if (typeof answer !== "string" || !/^0x[0-9a-f]{64}$/i.test(answer)) {
      throw new RpcError("broken", "the token does not know authorizations (EIP-3009)");
    }
    const result = { abi: ABI, functionName: "authorizationState", data: answer as Hex } as const;
    return decodeFunctionResult(result);
  });
}

function sameBlock(header: Header | null, final: BlockRef): void {
  if (header?.hash === final.hash) return;
  throw new RpcError("lagging", `block ${String(final.number)} is not there as it was read`);
}

/** Finds the log of a nonce that is used or canceled, and stores its transaction. */
async function findUse(
  deps: ScanDeps,
  reader: ChainReader,
  work: {
    readonly endpoint: Endpoint;
    readonly final: BlockRef;
    readonly question: NonceQuestion;
  },
): Promise<NonceLook["state"]> {
  const { endpoint, final, question } = work;
  try {
    const log = await useLog(reader.chain, endpoint, question);
    if (log === null) {
      throw new UnreadableError(
        "shape",
        `nonce ${question.nonce} is used and its log was not found`,
      );
    }
    const [answer] = await endpoint.rpc.batch([
      { method: "eth_getTransactionReceipt", params: [log.txHash] },
    ]);
    const receipt = readReceipt(valueOf(answer));
    if (receipt !== null) await storeReceipt(deps, reader.chain, { endpoint, receipt, final });
    if (log.blockNumber > final.number) return "unused";
    return log.topics[0] === AUTHORIZATION_CANCELED ? "canceled" : "used";
  } catch (error) {
    throw unreadable(error);
  }
}

async function useLog(
  chain: ChainSettings,
  endpoint: Endpoint,
  question: NonceQuestion,
): Promise<RawLog | null> {
  const filter: LogFilter = {
    address: tokensOf(chain, question.token),
    topics: [
      [AUTHORIZATION_USED, AUTHORIZATION_CANCELED],
      padded(question.authorizer),
      question.nonce,
    ],
  };
  const [answer] = await endpoint.rpc.batch([headerCall("latest")]);
  const head = readHeader(valueOf(answer));
  if (head === null) throw new RpcError("lagging", "the newest block is not there");
  // From the end of its time backwards: it was most likely used at once, but a late one counts too.
  const first = await blockAt(endpoint, question.from, head);
  let from = first;
  while (from <= head.number) {
    const to = Math.min(head.number, from + endpoint.rangeBlocks - 1);
    try {
      const { logs } = await askLogs(endpoint, [filter], { from, to }, {});
      const [log] = logs;
      if (log !== undefined) return log;
      from = to + 1;
      grow(endpoint);
    } catch (error) {
      const fault = faultOf(error);
      if (fault.fault !== "too_large" || to === from) throw fault;
      shrink(endpoint, to - from + 1, fault);
    }
  }
  return null;
}

async function storeReceipt(
  deps: ScanDeps,
  chain: ChainSettings,
  found: {
    readonly endpoint: Endpoint;
    readonly receipt: Receipt;
    readonly final: BlockRef;
  },
): Promise<Header> {
  const { endpoint, receipt, final } = found;
  const headers = await readHeaders(endpoint, [receipt.blockNumber]);
  const header = headers.get(receipt.blockNumber);
  if (header?.hash !== receipt.blockHash) {
    throw new RpcError("lagging", `block ${String(receipt.blockNumber)} changed while it was read`);
  }
  const contracts = new Set([...chain.tokens, ...chain.otherTokens].map((one) => one.address));
  const logs = receipt.logs.filter((log) => contracts.has(log.address));
  const isFinal = receipt.blockNumber <= final.number;
  await storeFound(deps.pool, chain, { logs, headers, final: isFinal }, deps.clock.now());
  return header;
}

/** What became of a transaction. */
export interface TransactionLook {
  readonly status: "succeeded" | "reverted" | "pending" | "unknown";
  readonly final: boolean;
}

/**
 * Asks for a transaction by its hash; one that any endpoint has in a block is there. What it moved
 * of
 * ours is stored. Throws UnreadableError when no endpoint can say.
 */
export async function lookTransaction(
  deps: ScanDeps,
  reader: ChainReader,
  txHash: string,
): Promise<TransactionLook> {
  const { chain } = reader;
  const final = await finalBlock(deps.pool, chain);
  const said = await ask(reader, async (endpoint) => {
    const [head, receipt, transaction] = await endpoint.rpc.batch([
      headerCall(final.number),
      { method: "eth_getTransactionReceipt", params: [txHash] },
      { method: "eth_getTransactionByHash", params: [txHash] },
    ]);
    sameBlock(readHeader(valueOf(head)), final);
    return { receipt: readReceipt(valueOf(receipt)), waits: valueOf(transaction) !== null };
  });
  const mined = said.find((one) => one.value.receipt !== null);
  const receipt = mined?.value.receipt ?? null;
  const lookedAt = deps.clock.now();
  const key = { scope: chain.chainId, txHash, lookedAt };
  if (mined === undefined || receipt === null) {
    const status = said.some((one) => one.value.waits) ? "pending" : "unknown";
    const nowhere = { status, blockNumber: null, blockTime: null, final: false } as const;
    await saveTransaction(deps.pool, { ...key, ...nowhere });
    return { status, final: false };
  }
  try {
    const header = await storeReceipt(deps, chain, { endpoint: mined.endpoint, receipt, final });
    const status = receipt.succeeded ? "succeeded" : "reverted";
    const isFinal = receipt.blockNumber <= final.number;
    const place = { blockNumber: receipt.blockNumber, blockTime: header.time, final: isFinal };
    await saveTransaction(deps.pool, { ...key, status, ...place });
    return { status, final: isFinal };
  } catch (error) {
    throw unreadable(error);
  }
}

/** Asks every endpoint that is not resting; those that fail are left out while others answer. */
async function ask<Value>(
  reader: ChainReader,
  question: (endpoint: Endpoint) => Promise<Value>,
): Promise<{ readonly endpoint: Endpoint; readonly value: Value }[]> {
  const awake = reader.endpoints.filter((one) => one.faults === 0);
  const asked = awake.length > 0 ? awake : reader.endpoints;
  const errors: RpcError[] = [];
  const said = await Promise.all(
    asked.map(async (endpoint) => {
      try {
        return [{ endpoint, value: await question(endpoint) }];
      } catch (error) {
        errors.push(faultOf(error));
        return [];
      }
    }),
  );
  const answers = said.flat();
  const [error] = errors;
  if (answers.length === 0 && error !== undefined) throw unreadable(error);
  return answers;
}

function unreadable(error: unknown): Error {
  if (error instanceof RpcError) return new UnreadableError(codeOf(error), error.message);
  return error instanceof Error ? error : new Error(String(error));
}
