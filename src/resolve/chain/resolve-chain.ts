/** Looks at one ambiguous row on chain: asks, decides, and has the decision carried out. */
import { UnreadableError } from "../../core/errors.ts";
import { isIntentState } from "../../core/states.ts";
import { leaveLadder } from "../../store/ladder.ts";
import type { Decision } from "../decision.ts";
import type { ChainSide, ResolveDeps } from "../deps.ts";
import { addMs } from "../../core/clock.ts";
import type { Candidate } from "../refresh.ts";
import { settle } from "../settle.ts";
import { decideChain } from "./decide-chain.ts";
import { readChainIntent, readChainSituation } from "./read-chain-situation.ts";
import type { ChainIntent, ChainSituation } from "./situation.ts";
import { chainProof, chainSet } from "./write-chain.ts";

/** What was decided about one row; `null`: it moved on meanwhile. */
export interface ChainOutcome {
  readonly decision: Decision;
  readonly outcome: Awaited<ReturnType<typeof settle>>;
}

/**
 * Decides about one row. Throws UnreadableError when no endpoint answers or they disagree: then
 * nothing is decided (case B38).
 */
export async function resolveOnChain(
  deps: ResolveDeps,
  candidate: Candidate,
): Promise<ChainOutcome | null> {
  const { intentId } = candidate.row;
  const input = { intentId, touchKnown: deps.local.touchKnown };
  const intent = await readChainIntent(deps.pool, input);
  if (intent === null || !isIntentState(intent.state)) {
    await leaveLadder(deps.pool, [intentId]);
    return null;
  }
  const side = deps.chain(intent.scope);
  if (side === null) {
    throw new UnreadableError("network", `${intent.scope} is not in the chains block`);
  }
  const before = await readChainSituation(deps.pool, {
    ...input,
    rules: deps.rules,
    asked: NOTHING,
  });
  const paid = before?.charges.some((charge) => charge.succeeded) === true;
  // A final success needs no further question: the log is in a block that stays.
  const asked = paid ? NOTHING : await ask(deps, side, intent);
  if (!paid) await deps.place();
  const situation = await readChainSituation(deps.pool, { ...input, rules: deps.rules, asked });
  if (situation === null) return null;
  const now = await deps.now();
  const decision = decideChain(situation, now);
  const outcome = await settle(deps, {
    candidate,
    intent: situation.intent,
    decision,
    proof: chainProof(situation, decision),
    set: (writing, spelling) =>
      chainSet({ row: candidate.row, situation, decision: writing, spelling }),
    now,
  });
  return { decision, outcome };
}

type Asked = Pick<ChainSituation, "nonce" | "transaction">;

const NOTHING: Asked = { nonce: null, transaction: null };

/** Asks the chain for what names the row; what it finds is stored by the reader. */
async function ask(deps: ResolveDeps, side: ChainSide, intent: ChainIntent): Promise<Asked> {
  const authorizer = intent.payer ?? side.onlyPayer;
  const { clockSlackMs, attemptWindowMs } = deps.rules;
  const ends = intent.validBefore ?? intent.updatedAt;
  const last = ends > intent.updatedAt ? ends : intent.updatedAt;
  const nonce =
    intent.nonce === null || authorizer === null
      ? null
      : await side.nonce({
          token: intent.asset,
          authorizer,
          nonce: intent.nonce,
          from: addMs(intent.createdAt, -clockSlackMs),
          to: addMs(last, attemptWindowMs),
        });
  const transaction = intent.txHash === null ? null : await side.transaction(intent.txHash);
  return { nonce, transaction };
}
