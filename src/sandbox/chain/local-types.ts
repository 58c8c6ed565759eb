/** Words of the local chain. */
import type { PrivateKeyAccount } from "viem/accounts";

import type { Anvil } from "./anvil.ts";

/** Bytes as text. */
export type Hex = `0x${string}`;

/** A deployed token. */
export interface LocalToken {
  readonly address: Hex;
  readonly name: string;
  readonly version: string;
}

/** A wallet of ours; addresses are in lower case. */
export interface Wallet {
  readonly address: Hex;
  readonly account: PrivateKeyAccount;
}

/** A signed authorization, ready to be submitted by anybody. */
export interface Authorization {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
  /** Unix seconds. */
  readonly validBefore: bigint;
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** A mined (or waiting) transaction. */
export interface Sent {
  readonly txHash: Hex;
  /** `null`: it waits. */
  readonly blockNumber: number | null;
  readonly status: "succeeded" | "reverted" | "pending";
  /** Log indices of its Transfer events, in their block. */
  readonly transfers: readonly number[];
}

/** The actions. */
export interface LocalChain {
  readonly anvil: Anvil;
  /** Accounts that the node signs for: the first deploys and submits. */
  readonly accounts: readonly Hex[];
  readonly newWallet: () => Wallet;
  readonly deployToken: (options?: {
    readonly symbol?: string;
    readonly decimals?: number;
  }) => Promise<LocalToken>;
  readonly deployBatcher: () => Promise<Hex>;
  readonly mint: (token: LocalToken, to: Hex, value: bigint) => Promise<Sent>;
  readonly sign: (
    token: LocalToken,
    from: Wallet,
    to: Hex,
    value: bigint,
    options?: { readonly validForSeconds?: number; readonly nonce?: Hex },
  ) => Promise<Authorization>;
  readonly submit: (
    token: LocalToken,
    authorization: Authorization,
    options?: SendOptions,
  ) => Promise<Sent>;
  readonly cancel: (token: LocalToken, from: Wallet, nonce: Hex) => Promise<Sent>;
  /** Any call of TOKEN_ABI, from an account that the node signs for. */
  readonly send: (to: Hex, data: Hex, options?: SendOptions) => Promise<Sent>;
  readonly transfer: (token: LocalToken, from: Hex, to: Hex, value: bigint) => Promise<Sent>;
  readonly receipt: (txHash: Hex) => Promise<Sent>;
  /** Mines blocks, `secondsApart` apart. */
  readonly mine: (blocks: number, secondsApart?: number) => Promise<void>;
  readonly head: () => Promise<{ readonly number: number; readonly seconds: number }>;
  /**
   * Throws the newest `depth` blocks away and makes as many others, empty but for what comes
   * back. All of them have the time of the block below; what was in the old ones is forgotten and
   * does not wait again, and the old blocks are unknown by their hashes too.
   */
  readonly reorg: (depth: number, again?: readonly (Reorged | Moved)[]) => Promise<void>;
  readonly automine: (on: boolean) => Promise<void>;
  /** The time of the next block, unix seconds; later ones go on from there. */
  readonly setNextTime: (seconds: number) => Promise<void>;
  /** Sends what waits once more with a higher fee: another hash, and only one of them is mined. */
  readonly replace: (waiting: Hex) => Promise<Sent>;
  /** Remembers the whole chain; the function that comes back resets it to here, once. */
  readonly remember: () => Promise<() => Promise<void>>;
}

/** A new transaction in a new block, counted from the first one that was replaced. */
export interface Reorged {
  readonly from: Hex;
  readonly to: Hex;
  readonly data: Hex;
  readonly block: number;
}

/** The same transaction, so with the same hash, in another block. */
export interface Moved {
  readonly txHash: Hex;
  readonly block: number;
}

export interface SendOptions {
  readonly from?: Hex;
  /** False: answers at once, whether it is mined or not. */
  readonly wait?: boolean;
  readonly accountNonce?: number;
  readonly gasPrice?: bigint;
}
