/** What the resolver needs from outside, as narrow as it uses it. Wired in src/daemon. */
import type { Pool } from "pg";

import type { IntentRow } from "../core/intent.ts";
import type { Log } from "../core/log.ts";
import type { ResolveMode } from "../core/settings.ts";
import type { IntentState } from "../core/states.ts";
import type { ProofRules } from "./absence.ts";
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

/** Everything that the resolver needs. */
export interface ResolveDeps {
  readonly pool: Pool;
  /** The database's clock, so that ages never mix two clocks (case B45). */
  readonly now: () => Promise<Date>;
  readonly mode: ResolveMode;
  readonly rules: ProofRules & LadderRules;
  /** `null`: webhooks only, so nothing can be proven absent. */
  readonly stripe: StripeSide | null;
  readonly local: LocalSide;
  /** Places everything that changed, so that what was read has its row and operation. */
  readonly place: () => Promise<void>;
  readonly log: Log;
}
