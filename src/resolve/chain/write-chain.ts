/** What a decision about a payment on chain writes into the team's row, and how it is proven. */
import { parseChainCharge } from "../../core/chain.ts";
import type { IntentRow } from "../../core/intent.ts";
import { targetState } from "../decision.ts";
import type { Decision, WritingDecision } from "../decision.ts";
import type { RowWrite } from "../deps.ts";
import { decisionProof } from "../proof.ts";
import { seedFingerprint } from "../row-write.ts";
import type { ChargeSpelling } from "../row-write.ts";
import type { OwnCharge } from "../situation.ts";
import type { ChainSituation } from "./situation.ts";

// The transfers of one row; more of them is a finding of its own and named there.
const OBJECTS_MAX = 10;

/** What a decision writes. `row` was re-read and decided on. */
export function chainSet(input: {
  readonly row: IntentRow;
  readonly situation: ChainSituation;
  readonly decision: WritingDecision;
  readonly spelling: ChargeSpelling;
}): RowWrite["set"] {
  const { row, decision, situation } = input;
  const state = targetState(decision);
  switch (decision.kind) {
    case "record":
      return {
        state,
        chargeId: spelled(input, decision.charge),
        response: settled(situation, decision.charge),
        fingerprint: seedFingerprint(row),
      };
    case "fail_terminal":
      // What the team noted about its own failure stays.
      return row.responseKind === "none"
        ? { state, response: neverSettled(situation, decision) }
        : { state };
    case "fail_retryable":
      return { state };
  }
}

/**
 * The hash that was mined, with its log index. A row that names a bare hash, and a team whose rows
 * do, keep that spelling: the log index is in the response then.
 */
function spelled(
  input: { readonly row: IntentRow; readonly spelling: ChargeSpelling },
  charge: OwnCharge,
): string {
  const stored = input.row.chargeId === null ? null : parseChainCharge(input.row.chargeId);
  const bare = stored === null ? input.spelling === "payment_intent" : stored.logIndex === null;
  return bare ? (charge.paymentIntent ?? charge.chargeId) : charge.chargeId;
}

/** The shape of x402's settlement answer, so that code which replays it finds what it looks for. */
function settled(situation: ChainSituation, charge: OwnCharge): Record<string, unknown> {
  const { intent } = situation;
  const { txHash, logIndex } = parseChainCharge(charge.chargeId) ?? { txHash: "", logIndex: null };
  return {
    success: true,
    transaction: txHash,
    network: intent.scope,
    payer: intent.payer,
    // x402 spells amounts as text, in the token's smallest unit.
    amount: String(charge.amountCaptured),
    asset: charge.asset,
    payTo: charge.payee,
    logIndex,
    nonce: intent.nonce,
    resolved_by: "tallyd",
  };
}

function neverSettled(
  situation: ChainSituation,
  decision: Extract<WritingDecision, { kind: "fail_terminal" }>,
): Record<string, unknown> {
  const { intent } = situation;
  return {
    success: false,
    transaction: "",
    network: intent.scope,
    payer: intent.payer,
    errorReason: `authorization_${decision.why}`,
    errorMessage: decision.reason,
    advice: decision.advice,
    resolved_by: "tallyd",
  };
}

/** The facts that the decision rests on. */
export function chainProof(situation: ChainSituation, decision: Decision): Record<string, unknown> {
  const { intent, nonce, transaction, readTo } = situation;
  return {
    ...decisionProof(decision),
    chain: intent.scope,
    readToBlock: readTo === null ? null : { ...readTo, number: String(readTo.number) },
    nonce:
      nonce === null
        ? null
        : {
            nonce: intent.nonce,
            authorizer: intent.payer,
            state: nonce.state,
            atBlock: String(nonce.block.number),
            atHash: nonce.block.hash,
            atTime: nonce.block.time.toISOString(),
            endpoints: nonce.endpoints,
            validBefore: intent.validBefore?.toISOString() ?? null,
          },
    transaction: transaction === null ? null : { hash: intent.txHash, ...transaction },
    ownCharges: situation.charges
      .slice(0, OBJECTS_MAX)
      .map((charge) => ({ id: charge.chargeId, status: charge.status, basis: charge.basis })),
  };
}
