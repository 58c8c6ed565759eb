/**
 * Proof of absence at Stripe (README.md, what it settles by itself): both object lists are
 * completely read from before
 * the key was minted until past the last possible attempt, every owned object in that range is
 * told apart by a mark, and none carries a mark of the row. Search is never used (case B25).
 */
import { addMs } from "../core/clock.ts";
import type { RuleSettings } from "../core/settings.ts";
import type { Missing } from "./decision.ts";
import type { OpenIntent, LastLook, Range, Situation } from "./situation.ts";

/** The lists that an absence verdict needs: a payment intent made earlier has its charge later. */
export const ABSENCE_SOURCES = ["stripe.payment_intents", "stripe.charges"] as const;

/** The settings that a proof depends on. */
export interface ProofRules extends Pick<
  RuleSettings,
  "attemptWindowMs" | "safetyLagMs" | "clockSlackMs" | "retryHorizonMs"
> {
  /** The metadata key in which writers put the intent id. */
  readonly metadataKey: string;
}

/** What an absence verdict rests on; stored with the resolution. */
export interface AbsenceProof {
  /** Completely read in both lists: all the time in which an attempt can have made something. */
  readonly range: Range;
  readonly sources: readonly string[];
  /** Owned objects that were made in the time of the attempts, each of them another row's. */
  readonly objects: number;
  /** The marks that were relied on to tell them apart; empty: there was nothing to tell apart. */
  readonly marks: readonly string[];
  readonly look: LastLook;
}

/** Proven, or what is missing. */
export type AbsenceVerdict =
  | { readonly kind: "proven"; readonly proof: AbsenceProof }
  | {
      readonly kind: "unproven";
      readonly missing: readonly Missing[];
      /** When time alone may complete the proof; `null`: it will not. */
      readonly until: Date | null;
    };

// "Right before it is spoken" (invariant 2): a look that is older than one pass is no last look.
const LOOK_AGE_MS_MAX = 5 * 60_000;
// Enough gaps to see what is wrong; a list with many holes has one cause.
const GAPS_NAMED_MAX = 5;
const MS_PER_SECOND = 1_000;

/**
 * The range in which an attempt of the row can have made an object: from the minting of its key
 * (less the slack between two clocks) until the longest retrying call after its last touch is over.
 * Whole seconds, since Stripe's `created` has no finer grain (case B24).
 */
export function attemptRange(
  intent: Pick<OpenIntent, "createdAt" | "updatedAt">,
  rules: ProofRules,
): Range {
  const last = Math.max(intent.updatedAt.getTime(), intent.createdAt.getTime());
  const first = Math.min(intent.updatedAt.getTime(), intent.createdAt.getTime());
  return {
    from: wholeSecond(first - rules.clockSlackMs),
    to: new Date(Math.ceil((last + rules.attemptWindowMs) / MS_PER_SECOND) * MS_PER_SECOND),
  };
}

function wholeSecond(ms: number): Date {
  return new Date(Math.floor(ms / MS_PER_SECOND) * MS_PER_SECOND);
}

/** When the lists of the attempts may be trusted at their newest end. */
export function provableAt(intent: OpenIntent, rules: ProofRules): Date {
  return addMs(attemptRange(intent, rules).to, rules.safetyLagMs);
}

/** What is missing to say that the lists are complete where they have to be; empty: nothing. */
export function missingCoverage(
  situation: Situation,
  rules: ProofRules,
  now: Date,
): readonly Missing[] {
  const missing: Missing[] = [];
  if (!situation.intent.touchKnown) {
    missing.push({
      what: "touch",
      detail:
        "the table has no time of change, so nobody knows when the last attempt was: " +
        "map updatedAt",
      ids: [],
    });
  }
  const ready = provableAt(situation.intent, rules);
  if (now < ready) {
    missing.push({
      what: "time",
      detail:
        `an attempt of the row may still be under way or not listed yet: ` +
        `nothing is final before ${ready.toISOString()}`,
      ids: [],
    });
  }
  // The newest end cannot be read yet: that it is not read says nothing more.
  const gaps = now < ready ? [] : situation.absence.gaps;
  for (const gap of gaps.slice(0, GAPS_NAMED_MAX)) {
    missing.push({
      what: "coverage",
      detail:
        `${gap.source} is not completely read from ${gap.from.toISOString()} ` +
        `to ${gap.to.toISOString()}`,
      ids: [],
    });
  }
  return missing;
}

/** Is the row proven to have no object at Stripe? */
export function proveAbsence(situation: Situation, rules: ProofRules, now: Date): AbsenceVerdict {
  const { intent, absence } = situation;
  const facts = [...missingCoverage(situation, rules, now), ...missingMarks(situation, rules)];
  // The look is made last, and only when nothing else is missing.
  const missing = facts.length > 0 ? facts : missingLook(intent, absence.look, now);
  if (missing.length > 0 || absence.look === null) {
    const onlyTime = missing.every((item) => item.what === "time");
    return {
      kind: "unproven",
      missing,
      until: onlyTime && now < provableAt(intent, rules) ? provableAt(intent, rules) : null,
    };
  }
  return {
    kind: "proven",
    proof: {
      range: attemptRange(intent, rules),
      sources: ABSENCE_SOURCES,
      objects: absence.owned,
      marks: reliedOn(situation, rules),
      look: absence.look,
    },
  };
}

function reliedOn(situation: Situation, rules: ProofRules): string[] {
  const { withMetadata, withKey } = situation.absence;
  const marks: string[] = [];
  if (withMetadata > 0) marks.push(`metadata.${rules.metadataKey}`);
  if (withKey > 0) marks.push("idempotency key");
  return marks;
}

function missingMarks(situation: Situation, rules: ProofRules): Missing[] {
  const { marked, unmarked, unmarkedTotal } = situation.absence;
  const missing: Missing[] = [];
  if (marked.length > 0) {
    missing.push({
      what: "mark",
      detail: "objects at Stripe carry a mark of this row, so it is not absent",
      ids: marked,
    });
  }
  if (unmarkedTotal > 0) {
    const one = unmarkedTotal === 1;
    missing.push({
      what: "mark",
      detail:
        `${String(unmarkedTotal)} ${one ? "payment" : "payments"} of the same time ` +
        `${one ? "carries" : "carry"} neither metadata.${rules.metadataKey} nor a known ` +
        "idempotency key: any of them could be this row's. Have the writer set that metadata key",
      ids: unmarked,
    });
  }
  return missing;
}

function missingLook(intent: OpenIntent, look: LastLook | null, now: Date): Missing[] {
  if (look === null || now.getTime() - look.at.getTime() > LOOK_AGE_MS_MAX) {
    return [{ what: "look", detail: "nobody looked at Stripe right before the verdict", ids: [] }];
  }
  if (look.kind !== "id") return [];
  // Stripe gave out the id that the row stores, so a denial speaks about the key, the account or
  // the mode and not about the payment (case B23).
  return [
    {
      what: "id",
      detail: look.found
        ? `Stripe knows ${look.id}, which the row names`
        : `the row names ${look.id} and Stripe denies it in ${intent.scope}: ` +
          "check account, mode and key",
      ids: [look.id],
    },
  ];
}
