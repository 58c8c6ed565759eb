/** What can be decided about an ambiguous intent (README.md, what it settles by itself). */
import { unreachable } from "../core/errors.ts";
import type { AbsenceProof } from "./absence.ts";
import type { OwnCharge } from "./situation.ts";

/** Something that a proof lacks. */
export interface Missing {
  readonly what:
    "coverage" | "mark" | "look" | "time" | "touch" | "id" | "status" | "owner" | "write";
  /** One sentence for people: what is missing and what would supply it. */
  readonly detail: string;
  /** Objects that it is about, a bounded sample; empty: it is about none. */
  readonly ids: readonly string[];
}

/** Why nothing is written although the provider's answer is known. */
export type HoldCode =
  | "amount_mismatch"
  | "fingerprint_conflict"
  | "double_charge"
  | "key_reuse"
  | "authorization_reuse"
  | "state_drift";

/**
 * Why a row has failed for good. On chain: `expired` authorizations can never settle, `reverted`
 * transactions moved nothing.
 */
export type FailedWhy = "declined" | "canceled" | "absent" | "expired" | "reverted";

/** A decision. Only record, fail_terminal and fail_retryable write. */
export type Decision =
  | {
      readonly kind: "record";
      readonly reason: string;
      readonly charge: OwnCharge;
      /** Which mark ties the charge to the row. */
      readonly basis: string;
      /** What a reader should know besides; may be empty. */
      readonly notes: readonly string[];
      /** A likeness and no proof: told as a suggestion, never written. */
      readonly onlySuggested?: true;
    }
  | {
      readonly kind: "fail_terminal";
      readonly reason: string;
      readonly why: FailedWhy;
      /** What to do, and what not. */
      readonly advice: string;
      /** The provider objects that failed; empty for an absence. */
      readonly objects: readonly string[];
      readonly absence: AbsenceProof | null;
    }
  | {
      readonly kind: "fail_retryable";
      readonly reason: string;
      readonly advice: string;
      readonly absence: AbsenceProof;
    }
  | {
      readonly kind: "wait";
      readonly reason: string;
      /** `provider`: an object there is not final; `holder`: somebody may still hold the row. */
      readonly on: "provider" | "holder";
      /** When another look may tell more than this one; `null`: the ladder says. */
      readonly until: Date | null;
      readonly objects: readonly string[];
    }
  | {
      readonly kind: "hold";
      readonly reason: string;
      readonly code: HoldCode;
      readonly basis: string | null;
      readonly charges: readonly string[];
    }
  | {
      readonly kind: "unproven";
      readonly reason: string;
      readonly missing: readonly Missing[];
      /** When the proof may become possible by time alone; `null`: time does not help. */
      readonly until: Date | null;
    };

/** Decisions that write to the team's table. */
export type WritingDecision = Extract<
  Decision,
  { kind: "record" | "fail_terminal" | "fail_retryable" }
>;

/** Does this decision write? */
export function writes(decision: Decision): decision is WritingDecision {
  return (
    decision.kind === "record" ||
    decision.kind === "fail_terminal" ||
    decision.kind === "fail_retryable"
  );
}

/** The state that a writing decision leads to. */
export function targetState(
  decision: WritingDecision,
): "recorded" | "failed_terminal" | "failed_retryable" {
  switch (decision.kind) {
    case "record":
      return "recorded";
    case "fail_terminal":
      return "failed_terminal";
    case "fail_retryable":
      return "failed_retryable";
  }
}

/** What a decision leaves open. */
export function openAfter(decision: Decision): readonly string[] {
  switch (decision.kind) {
    case "record":
      return decision.notes;
    case "fail_terminal":
      // A declined payment intent stays payable at Stripe.
      return decision.why === "declined" ? [decision.advice] : [];
    case "fail_retryable":
      return [];
    case "wait":
    case "hold":
      return [decision.reason];
    case "unproven":
      return decision.missing.map((item) => item.detail);
    default:
      return unreachable(decision);
  }
}
