/**
 * The situation of one ambiguous row on chain: everything that its decision may rest on. What the
 * chain itself was asked right before the decision (`nonce`, `transaction`) is part of it.
 */
import type { OpenIntent, OwnCharge, RivalRow, SiblingCharge } from "../situation.ts";

/** The row, with what names its payment on chain. */
export interface ChainIntent extends OpenIntent {
  /** Address that pays; `null`: the row names none, or a name of the team's own. */
  readonly payer: string | null;
  /** Nonce of the signed authorization; `null`: the row does not keep it. */
  readonly nonce: string | null;
  /** Hash of the transaction that the row names; `null`: none. */
  readonly txHash: string | null;
  /** When the authorization ends; `null`: the row does not say. */
  readonly validBefore: Date | null;
}

/** A block that decisions may rest on: at or below finality. */
export interface FinalBlock {
  readonly number: bigint;
  readonly hash: string;
  readonly time: Date;
}

/** What the token contract says about an authorization at a final block. */
export interface NonceAnswer {
  readonly state: "used" | "canceled" | "unused";
  readonly block: FinalBlock;
  /** How many endpoints agreed. */
  readonly endpoints: number;
}

/** What became of the transaction that the row names. */
export interface TransactionAnswer {
  readonly status: "succeeded" | "reverted" | "pending" | "unknown";
  readonly final: boolean;
}

/** Another row with the same nonce. */
export interface SharedNonce {
  readonly intentId: string;
  readonly state: string;
  /** The charge that is its own; `null`: it has none either. */
  readonly chargeId: string | null;
}

/** Everything about one ambiguous row on chain at one moment. */
export interface ChainSituation {
  readonly intent: ChainIntent;
  /** Transfers of the row; those that a reorganisation took away are left out. */
  readonly charges: readonly OwnCharge[];
  readonly siblings: readonly SiblingCharge[];
  readonly rivals: readonly RivalRow[];
  readonly sharedNonce: readonly SharedNonce[];
  /**
   * Final transfers of the row's payer, payee, token and amount in its time that no row owns.
   */
  readonly alike: readonly OwnCharge[];
  /** The newest completely read block; `null`: the chain was never read. */
  readonly readTo: FinalBlock | null;
  /** Time of the oldest completely read block. */
  readonly readFrom: Date | null;
  /** `null`: the row has no nonce, or its payer is unknown. */
  readonly nonce: NonceAnswer | null;
  /** `null`: the row names no transaction. */
  readonly transaction: TransactionAnswer | null;
}
