/** Logs to transfers and authorizations, and what a transfer is for us. */
import type { ChainSettings } from "../../core/settings.ts";
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_USED,
  TRANSFER,
  TRANSFER_WITH_MEMO,
  addressOf,
} from "./topics.ts";
import type { RawLog } from "./wire.ts";

/** What a transfer is for us. */
export type Role = "charge" | "refund" | "other_token" | "none";

/** Where a log lies. */
export interface Place {
  readonly txHash: string;
  readonly logIndex: number;
  readonly blockNumber: number;
  readonly blockHash: string;
}

/** A movement of a watched token, of more than nothing. */
export interface Transfer extends Place {
  readonly token: string;
  readonly sender: string;
  readonly recipient: string;
  /** Smallest unit. */
  readonly value: bigint;
  /** Of the authorization that moved it; `null`: it was sent plainly. */
  readonly nonce: string | null;
  readonly memo: string | null;
  readonly role: Role;
}

/** What became of a signed authorization. */
export interface AuthorizationLog extends Place {
  readonly token: string;
  readonly authorizer: string;
  readonly nonce: string;
  readonly outcome: "used" | "canceled";
}

/** What a list of logs says. */
export interface ParsedLogs {
  readonly transfers: readonly Transfer[];
  readonly authorizations: readonly AuthorizationLog[];
}

const ZERO = `0x${"0".repeat(40)}`;
// Tempo's fee manager: its rows are the network's fee and no payment.
const FEE_MANAGER = `0xfeec${"0".repeat(36)}`;
const VALUE = /^0x[0-9a-f]{64}$/;

/** Reads logs in any order, of whole transactions or of parts of them. */
export function parseLogs(
  logs: readonly RawLog[],
  chain: ChainSettings,
  options: { readonly ours?: ReadonlySet<string> } = {},
): ParsedLogs {
  const at = new Map(logs.map((log) => [placeKey(log, log.logIndex), log]));
  const transfers: Transfer[] = [];
  const authorizations: AuthorizationLog[] = [];
  for (const log of logs) {
    const [event] = log.topics;
    if (event === TRANSFER) {
      const transfer = transferOf(log, at, chain, options.ours ?? new Set());
      if (transfer !== null) transfers.push(transfer);
    }
    if (event === AUTHORIZATION_USED || event === AUTHORIZATION_CANCELED) {
      const [, authorizer, nonce] = log.topics;
      if (authorizer === undefined || nonce === undefined) continue;
      authorizations.push({
        ...placeOf(log),
        token: log.address,
        authorizer: addressOf(authorizer),
        nonce,
        outcome: event === AUTHORIZATION_USED ? "used" : "canceled",
      });
    }
  }
  return { transfers, authorizations };
}

function placeKey(log: RawLog, index: number): string {
  return `${log.blockHash} ${log.txHash} ${String(index)}`;
}

function placeOf(log: RawLog): Place {
  const { txHash, logIndex, blockNumber, blockHash } = log;
  return { txHash, logIndex, blockNumber, blockHash };
}

function transferOf(
  log: RawLog,
  at: ReadonlyMap<string, RawLog>,
  chain: ChainSettings,
  ours: ReadonlySet<string>,
): Transfer | null {
  const [, from, to] = log.topics;
  // Some contracts index the value: another shape is another event.
  if (from === undefined || to === undefined || !VALUE.test(log.data)) return null;
  const value = BigInt(log.data);
  // Anybody may move nothing in anybody's name (address poisoning, case B40).
  if (value === 0n) return null;
  const [sender, recipient] = [addressOf(from), addressOf(to)];
  if (chain.mpp !== null && [sender, recipient].includes(FEE_MANAGER)) return null;
  const nonce = nonceBefore(log, sender, at);
  return {
    ...placeOf(log),
    token: log.address,
    sender,
    recipient,
    value,
    nonce,
    memo: chain.mpp === null ? null : memoBeside(log, at),
    role: roleOf(
      { token: log.address, sender, recipient },
      chain,
      nonce !== null && ours.has(nonce),
    ),
  };
}

/** AuthorizationUsed lies right before the transfer that it moved. */
function nonceBefore(log: RawLog, sender: string, at: ReadonlyMap<string, RawLog>): string | null {
  const before = at.get(placeKey(log, log.logIndex - 1));
  const [event, authorizer, nonce] = before?.topics ?? [];
  if (before?.address !== log.address || event !== AUTHORIZATION_USED) return null;
  return authorizer !== undefined && addressOf(authorizer) === sender ? (nonce ?? null) : null;
}

/** TransferWithMemo tells one movement a second time, right beside its Transfer. */
function memoBeside(log: RawLog, at: ReadonlyMap<string, RawLog>): string | null {
  for (const index of [log.logIndex + 1, log.logIndex - 1]) {
    const other = at.get(placeKey(log, index));
    const [event, from, to, memo] = other?.topics ?? [];
    const same =
      other?.address === log.address &&
      event === TRANSFER_WITH_MEMO &&
      from === log.topics[1] &&
      to === log.topics[2] &&
      other.data === log.data;
    if (same) return memo ?? null;
  }
  return null;
}

/**
 * A transfer is ours when it leaves a payer or reaches a payee, or carries a nonce of a row of
 * ours;
 * between the same two in the other direction it is money that went back. Minting, burning and
 * moving to oneself is nobody's.
 */
export function roleOf(
  transfer: { readonly token: string; readonly sender: string; readonly recipient: string },
  chain: Pick<ChainSettings, "tokens" | "payers" | "payees">,
  ourNonce: boolean,
): Role {
  const { token, sender, recipient } = transfer;
  if (sender === ZERO || recipient === ZERO || sender === recipient) return "none";
  const accepted = chain.tokens.some((one) => one.address === token);
  if (ourNonce || chain.payers.includes(sender) || chain.payees.includes(recipient)) {
    return accepted ? "charge" : "other_token";
  }
  if (chain.payees.includes(sender) || chain.payers.includes(recipient)) {
    return accepted ? "refund" : "none";
  }
  return "none";
}
