/** What the resolver needs from outside, as narrow as it uses it. Wired in src/daemon. */
import type { Pool } from "pg";

import type { IntentRow } from "../core/intent.ts";
import type { Log } from "../core/log.ts";
import type { ResolveMode } from "../core/settings.ts";
import type { IntentState } from "../core/states.ts";
import type { ProofRules } from "./absence.ts";
import type { NonceAnswer, TransactionAnswer } from "./chain/situation.ts";
import type { LadderRules } from "./ladder.ts";
import type { Range } from "./situation.ts";

/** Stripe, read-only. Every call throws UnreadableError when Stripe cannot be read. */
export interface StripeSide {
  /**
   * Makes sure that both object lists are completely read over the range, as far as they settled.
   */
  readonly ensureCoverage: (
    input: Range & { readonly scope: string; readonly signal?: AbortSignal },
  ) => Promise<void>;
  /** Reads one object by id into the mirror; `found` false: Stripe denies it. */
  readonly look: (
    scope: string,
    id: string,
  ) => Promise<{ readonly found: boolean; readonly lookedAt: Date }>;
  /**
   * Reads the newest page of both object lists over the range into the mirror, whatever is covered;
   * `complete`: the page held all of it.
   */
  readonly lookAtLists: (
    scope: string,
    range: Range,
  ) => Promise<{ readonly complete: boolean; readonly lookedAt: Date }>;
  /** Can an id of this spelling be looked up? */
  readonly isReadable: (id: string) => boolean;
}

/** What is written to one row, and what must still hold there. */
export interface RowWrite {
  readonly intentId: string;
  readonly expectState: IntentState;
  /** Hash of the row that was decided on. */
  readonly expectRowHash: string;
  readonly set: {
    readonly state: IntentState;
    readonly chargeId?: string;
    readonly response?: Readonly<Record<string, unknown>>;
    /** Written only where the table has the column and the row has none. */
    readonly fingerprint?: string;
  };
}

/** What became of a write. */
export type WriteResult =
  | { readonly outcome: "applied"; readonly row: IntentRow; readonly snapshotAt: string }
  | { readonly outcome: "lost_race"; readonly reason: string }
  | { readonly outcome: "refused"; readonly reason: string };

/** The team's table. Every call throws UnreadableError when it is out of reach. */
export interface LocalSide {
  /** Reads rows by id right now and stores what it finds in the mirror. */
  readonly reread: (intentIds: readonly string[]) => Promise<readonly IntentRow[]>;
  /** Compare-and-set on one row. */
  readonly write: (write: RowWrite) => Promise<WriteResult>;
  /** False: the table has no time of change. */
  readonly touchKnown: boolean;
}

/** One chain, read-only. Every call throws UnreadableError when it cannot be read. */
export interface ChainSide {
  /** Our only wallet that pays there; `null`: there are several, or none is configured. */
  readonly onlyPayer: string | null;
  /** What became of a signed authorization at a final block; what it finds is stored. */
  readonly nonce: (input: {
    /** `null`: any of the configured tokens. */
    readonly token: string | null;
    readonly authorizer: string;
    readonly nonce: string;
    /** The time in which it can have been used. */
    readonly from: Date;
    readonly to: Date;
  }) => Promise<NonceAnswer>;
  /** What became of a transaction; transfers of ours in it are stored. */
  readonly transaction: (txHash: string) => Promise<TransactionAnswer>;
}

/** Everything that the resolver needs. */
export interface ResolveDeps {
  readonly pool: Pool;
  /** The database's clock, so that ages never mix two clocks (case B45). */
  readonly now: () => Promise<Date>;
  readonly mode: ResolveMode;
  readonly rules: ProofRules & LadderRules;
  /** `null`: webhooks only, so nothing can be proven absent. */
  readonly stripe: StripeSide | null;
  /** `null`: the chain is not configured. */
  readonly chain: (scope: string) => ChainSide | null;
  readonly local: LocalSide;
  /** Places everything that changed, so that what was read has its row and operation. */
  readonly place: () => Promise<void>;
  readonly log: Log;
}
