/** Logs to transfers and authorizations, and what a transfer is for us. */
import type { ChainSettings } from "../../core/settings.ts";
import { inOrder } from "./log-order.ts";
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
  const ordered = inOrder(logs);
  const ours = options.ours ?? new Set();
  const transfers: Transfer[] = [];
  const authorizations: AuthorizationLog[] = [];
  for (const [index, log] of ordered.entries()) {
    const [event] = log.topics;
    if (event === TRANSFER) {
      const beside = { before: ordered[index - 1], after: ordered[index + 1] };
      const transfer = transferOf(log, beside, chain, ours);
      if (transfer !== null) transfers.push(transfer);
    }
    if (event === AUTHORIZATION_USED || event === AUTHORIZATION_CANCELED) {
      const [, authorizer, nonce] = log.topics;
      if (authorizer === undefined || nonce === undefined) continue;
      const { txHash, logIndex, blockNumber, blockHash } = log;
      authorizations.push({
        txHash,
        logIndex,
        blockNumber,
        blockHash,
        token: log.address,
        authorizer: addressOf(authorizer),
        nonce,
        outcome: event === AUTHORIZATION_USED ? "used" : "canceled",
      });
    }
  }
  return { transfers, authorizations };
}

/** The logs around one in the order of the chain, however far away. */
interface Beside {
  readonly before: RawLog | undefined;
  readonly after: RawLog | undefined;
}

/** Does the log lie right there: in the same transaction of the same block, `steps` further? */
function lies(other: RawLog | undefined, steps: 1 | -1, log: RawLog): other is RawLog {
  return (
    other?.logIndex === log.logIndex + steps &&
    other.txHash === log.txHash &&
    other.blockHash === log.blockHash
  );
}

function transferOf(
  log: RawLog,
  beside: Beside,
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
  const nonce = nonceBefore(log, sender, beside.before);
  const { txHash, logIndex, blockNumber, blockHash } = log;
  // Field by field: spreading costs more than all the rest.
  return {
    txHash,
    logIndex,
    blockNumber,
    blockHash,
    token: log.address,
    sender,
    recipient,
    value,
    nonce,
    memo: chain.mpp === null ? null : memoBeside(log, beside),
    role: roleOf(
      { token: log.address, sender, recipient },
      chain,
      nonce !== null && ours.has(nonce),
    ),
  };
}

/** AuthorizationUsed lies right before the transfer that it moved. */
function nonceBefore(log: RawLog, sender: string, before: RawLog | undefined): string | null {
  if (!lies(before, -1, log) || before.address !== log.address) return null;
  const [event, authorizer, nonce] = before.topics;
  if (event !== AUTHORIZATION_USED || authorizer === undefined) return null;
  return addressOf(authorizer) === sender ? (nonce ?? null) : null;
}

/** TransferWithMemo tells one movement a second time, right beside its Transfer. */
function memoBeside(log: RawLog, { before, after }: Beside): string | null {
  if (lies(after, 1, log)) {
    const memo = memoOf(after, log);
    if (memo !== null) return memo;
  }
  return lies(before, -1, log) ? memoOf(before, log) : null;
}

function memoOf(other: RawLog, log: RawLog): string | null {
  const [event, from, to, memo] = other.topics;
  const same =
    other.address === log.address &&
    event === TRANSFER_WITH_MEMO &&
    from === log.topics[1] &&
    to === log.topics[2] &&
    other.data === log.data;
  return same ? (memo ?? null) : null;
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
