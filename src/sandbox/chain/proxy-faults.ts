/** What the door before a local chain can do wrong. All off at first, all can be set at once. */

/** Whose words a refusal has. */
export type Vendor =
  | "alchemy"
  | "alchemy-free"
  | "ankr"
  | "arbitrum"
  | "base"
  | "cdp"
  | "infura"
  | "public"
  | "publicnode"
  | "quicknode"
  | "reth";

/** Which blocks a refusal says would work. */
export type Suggestion = "smaller" | "equal" | "inverted" | "none";

/** Lists of logs that are too large. */
export interface SizeFaults {
  /** More blocks than this are refused, in a vendor's words. */
  readonly range?: {
    readonly blocks: number;
    readonly vendor: Vendor;
    readonly suggest?: Suggestion;
  };
  /** More logs than this are refused; a number alone: as reth does, suggesting the same range. */
  readonly results?:
    number | { readonly max: number; readonly vendor: Vendor; readonly suggest?: Suggestion };
  /** Ranges that touch this block are refused however small, as are lists of it alone. */
  readonly refuse?: number;
  /** `eth_getLogs` is no part of the plan: always refused. */
  readonly noLogs?: boolean;
}

/** Lists of logs that are wrong, without a word about it. */
export interface LieFaults {
  /** Every n-th answer to `eth_getLogs` is an empty list. */
  readonly emptyEvery?: number;
  /** What `emptyEvery` counts: answers (the default), or HTTP requests with all of theirs. */
  readonly emptyBy?: "call" | "request";
  /** Every answer to `eth_getLogs` is an empty list. */
  readonly empty?: boolean;
  /** The first log of every list is missing. */
  readonly drop?: boolean;
  /** The logs of this transaction are missing in every list. */
  readonly dropTransaction?: string;
  /** The first log of every list moved one unit more than it says elsewhere. */
  readonly altered?: boolean;
  /** The first log of a list is in it twice. */
  readonly repeated?: boolean;
  /** Two different logs of a list have one block and one index. */
  readonly doubled?: boolean;
  /** The first log of a list is marked as removed by a reorganisation. */
  readonly removed?: boolean;
  /** A list begins with a log of a block that is not mined. */
  readonly unmined?: boolean;
  /** Receipts are hidden as well. */
  readonly blind?: boolean;
}

/** Where the node thinks that the chain ends, and which chain it is. */
export interface HeadFaults {
  /** It is these many blocks behind: nothing above exists for it, and that is no error. */
  readonly lag?: number;
  /** It stopped at this block while the chain goes on. */
  readonly frozenAt?: number;
  /** It claims these many blocks more than it has. */
  readonly ahead?: number;
  readonly chainId?: number;
  /** Hash of block 0. */
  readonly genesis?: string;
  /** Tags that it does not know. */
  readonly tags?: readonly string[];
}

/** What goes wrong before anything is looked up. */
export interface LineFaults {
  /** So many requests are refused as too many, first. */
  readonly busy?: number;
  /** How: status 429 with Retry-After (the default), or an error -32005 in a 200. */
  readonly busyBy?: "status" | "body";
  /** Seconds, or a date as HTTP writes it; default 1. */
  readonly retryAfter?: string;
  /** Every request is answered with this status. */
  readonly status?: number;
  readonly batches?: boolean;
  /** Answers break off in the middle. */
  readonly cut?: boolean;
  /** Connections break without an answer. */
  readonly dead?: boolean;
  readonly delayMs?: number;
  /** Answers are these many bytes longer: clients have limits. */
  readonly padBytes?: number;
}

/** All of them. */
export type ProxyFaults = SizeFaults & LieFaults & HeadFaults & LineFaults;
