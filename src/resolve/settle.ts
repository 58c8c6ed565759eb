/** Carries out one decision: the write, its record, and the row's place on the ladder. */
import { contractOf } from "../core/contract.ts";
import type { PoolClient } from "pg";

import { upsertIntents } from "../store/intents.ts";
import { leaveLadder, saveLook } from "../store/ladder.ts";
import { markChanged } from "../store/mirror-changed.ts";
import { addResolution } from "../store/resolutions.ts";
import type { ResolutionOutcome } from "../store/resolutions.ts";
import { withTx } from "../store/tx.ts";
import { openAfter, targetState, writes } from "./decision.ts";
import type { Decision, WritingDecision } from "./decision.ts";
import type { ResolveDeps, RowWrite, WriteResult } from "./deps.ts";
import { nextLook } from "./ladder.ts";
import { decisionWord, fullReason } from "./proof.ts";
import type { Candidate } from "./refresh.ts";
import { chargeSpelling } from "./row-write.ts";
import type { ChargeSpelling } from "./row-write.ts";
import type { OpenIntent } from "./situation.ts";

/** A decision about a row that was looked at, on any rail. */
export interface Decided {
  readonly candidate: Candidate;
  readonly intent: OpenIntent;
  readonly decision: Decision;
  /** The facts that it rests on, as JSON. */
  readonly proof: Readonly<Record<string, unknown>>;
  /** What a decision that writes puts into the row. */
  readonly set: (decision: WritingDecision, spelling: ChargeSpelling) => RowWrite["set"];
  readonly now: Date;
}

/**
 * Writes when the decision and the mode say so, then stores the resolution. A repeat of what the
 * last look said is not stored again. A process that dies between the two leaves the row written
 * and without a record; the response says that tallyd resolved it. Throws UnreadableError.
 */
export async function settle(deps: ResolveDeps, decided: Decided): Promise<ResolutionOutcome> {
  const { decision } = decided;
  if (!writes(decision)) return store(deps, decided, { outcome: "none", written: null });
  if (deps.mode !== "write" || isOnlySuggested(decision)) {
    return store(deps, decided, { outcome: "suggested", written: null });
  }
  const { row } = decided.candidate;
  const spelling = await chargeSpelling(deps.pool, row);
  const written = await deps.local.write({
    intentId: row.intentId,
    expectState: row.state,
    expectRowHash: row.rowHash,
    set: decided.set(decision, spelling),
  });
  return store(deps, decided, { outcome: written.outcome, written });
}

interface Outcome {
  readonly outcome: ResolutionOutcome;
  readonly written: WriteResult | null;
}

async function store(
  deps: ResolveDeps,
  decided: Decided,
  { outcome, written }: Outcome,
): Promise<ResolutionOutcome> {
  const { intent, decision, now } = decided;
  const reason = fullReason(decision);
  await withTx(deps.pool, async (tx) => {
    const added = await addResolution(
      tx,
      {
        intentId: intent.intentId,
        operationId: intent.operationId,
        decision: decisionWord(decision),
        reason:
          written === null || written.outcome === "applied"
            ? reason
            : `${reason}. Not written: ${written.reason}`,
        fromState: intent.state,
        toState: writes(decision) ? targetState(decision) : null,
        chargeId: decision.kind === "record" ? decision.charge.chargeId : null,
        outcome,
        proof: { ...decided.proof },
        contract: { ...contractOf({ intent, rules: deps.rules, now, open: openAfter(decision) }) },
        decidedAt: now,
      },
      { onlyNews: outcome !== "applied" },
    );
    if (written?.outcome === "applied") {
      // Stored here, not only at the next read, so that no detector judges the row as it was.
      await upsertIntents(tx, { rows: [written.row], snapshotAt: written.snapshotAt });
      await leaveLadder(tx, [intent.intentId]);
      await judgeAgain(tx, decided);
      return;
    }
    const moved = await climb(tx, deps, decided, outcome);
    if (added || moved) await judgeAgain(tx, decided);
  });
  return outcome;
}

/** Moves the row on its ladder; answers whether detectors have to know. */
async function climb(
  tx: PoolClient,
  deps: ResolveDeps,
  decided: Decided,
  outcome: ResolutionOutcome,
): Promise<boolean> {
  const { candidate, decision, now } = decided;
  const { due } = candidate;
  // The row moved under our hands: it is looked at again at once, as it is now.
  const next =
    outcome === "lost_race"
      ? { kind: "look" as const, at: now }
      : nextLook(deps.rules, { scope: due.scope, since: due.since, now, decision });
  const ended = next.kind === "end";
  await saveLook(tx, {
    intentId: due.intentId,
    rung: due.rung + 1,
    nextAt: ended ? null : next.at,
    endedAt: ended ? (due.endedAt ?? now) : null,
    missing: ended ? next.missing : null,
    since: due.since,
  });
  return due.rung === 0 || ended !== (due.endedAt !== null);
}

/** Hands the row to match, which makes its operation due for the judge. */
async function judgeAgain(tx: PoolClient, decided: Decided): Promise<void> {
  await markChanged(tx, {
    objects: [{ kind: "intent", scope: "", id: decided.intent.intentId }],
    now: decided.now,
  });
}

function isOnlySuggested(decision: WritingDecision): boolean {
  return decision.kind === "record" && decision.onlySuggested === true;
}
