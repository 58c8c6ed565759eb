/**
 * The decision about one ambiguous row on chain (README.md, what it settles by itself). The nonce
 * of a signed authorization decides: used once and seen in a final block it is paid, whatever any
 * server answered; canceled, or unused when its time is over at a final block, it can never settle
 * (cases B34, B35). A hash alone is weaker: it may be replaced.
 */
import { addMs } from "../../core/clock.ts";
import { unreachable } from "../../core/errors.ts";
import { decideSuccess } from "../decide-success.ts";
import type { SuccessFacts } from "../decide-success.ts";
import type { Decision, Missing } from "../decision.ts";
import type { OwnCharge } from "../situation.ts";
import type { ChainSituation, FinalBlock } from "./situation.ts";

// A final block that is read a little later than it was made; waking early costs one look.
const FINALITY_POLL_MS = 30_000;

/** Decides; pure. `now` is the time of the re-read. */
export function decideChain(situation: ChainSituation, now: Date): Decision {
  const { state } = situation.intent;
  const paid = situation.charges.filter((charge) => charge.succeeded).toSorted(byTime);
  switch (state) {
    case "recorded":
    case "failed_terminal":
      return {
        kind: "hold",
        code: "state_drift",
        basis: null,
        charges: paid.map((charge) => charge.chargeId),
        reason: `${state} is never written: somebody may have acted on it`,
      };
    case "key_minted":
    case "failed_retryable":
      if (paid.length > 0) return decideSuccess(successFacts(situation), paid);
      return wait("holder", `${state}: only a success of its own is written, and there is none`);
    case "in_flight":
    case "reconciling":
      if (paid.length > 0) return decideSuccess(successFacts(situation), paid);
      return undecidedYet(situation, now);
    default:
      return unreachable(state);
  }
}

function byTime(a: OwnCharge, b: OwnCharge): number {
  return a.createdAt.getTime() - b.createdAt.getTime();
}

function successFacts(situation: ChainSituation): SuccessFacts {
  const { intent, siblings, rivals } = situation;
  return { intent, siblings, rivals, payments: [], sharedKeys: [] };
}

function wait(
  on: "provider" | "holder",
  reason: string,
  rest: { readonly until?: Date; readonly objects?: readonly string[] } = {},
): Decision {
  return { kind: "wait", on, reason, until: rest.until ?? null, objects: rest.objects ?? [] };
}

function unproven(missing: readonly Missing[], reason: string): Decision {
  return { kind: "unproven", reason, missing, until: null };
}

function undecidedYet(situation: ChainSituation, now: Date): Decision {
  const { intent, readTo } = situation;
  const pending = situation.charges.find((charge) => charge.status === "pending");
  if (pending !== undefined) {
    const until = addMs(now, FINALITY_POLL_MS);
    const objects = [pending.chargeId];
    return wait("provider", `${pending.chargeId} is mined and not final yet`, { until, objects });
  }
  if (readTo === null) {
    const detail = `${intent.scope} was never read completely: see tallyd doctor`;
    return unproven([{ what: "coverage", detail, ids: [] }], "the chain is not known");
  }
  if (intent.nonce !== null) return byNonce(situation, now);
  if (intent.txHash !== null) return byHash(situation, readTo, now);
  return byLikeness(situation);
}

function byNonce(situation: ChainSituation, now: Date): Decision {
  const { nonce, sharedNonce } = situation;
  if (nonce === null) {
    const detail = "the row has a nonce and no payer: map payer, since a nonce is its payer's";
    return unproven([{ what: "mark", detail, ids: [] }], "nobody knows whose nonce it is");
  }
  const other = sharedNonce.find((row) => row.chargeId !== null);
  switch (nonce.state) {
    case "canceled":
      return never(situation, "canceled", "its authorization was canceled on chain");
    case "used":
      if (other !== undefined && other.chargeId !== null)
        return usedByAnother(other.intentId, other.chargeId);
      return unproven(
        [
          {
            what: "mark",
            detail:
              "the authorization was used, and no transfer of a watched token belongs to it: " +
              "look at the transaction, and at chains.tokens",
            ids: [],
          },
        ],
        "the nonce is used and what it paid is not known",
      );
    case "unused":
      return unused(situation, nonce.block, now);
    default:
      return unreachable(nonce.state);
  }
}

function usedByAnother(intentId: string, chargeId: string): Decision {
  return {
    kind: "hold",
    code: "authorization_reuse",
    basis: "nonce",
    charges: [chargeId],
    reason: `its authorization paid ${intentId} with ${chargeId}: one signature pays once`,
  };
}

/** EIP-3009 settles only while the block's time is before `validBefore`. */
function unused(situation: ChainSituation, block: FinalBlock, now: Date): Decision {
  const { validBefore } = situation.intent;
  if (validBefore === null) {
    const detail =
      "the row does not say until when its authorization is valid: map validBefore, since " +
      "without it the authorization may be used at any time";
    return unproven([{ what: "time", detail, ids: [] }], "the nonce is not used so far");
  }
  const at = `block ${String(block.number)} of ${block.time.toISOString()}`;
  if (block.time >= validBefore) {
    return never(
      situation,
      "expired",
      `its authorization ended at ${validBefore.toISOString()} and was not used up to ${at}`,
    );
  }
  const later = validBefore > now ? validBefore : now;
  return wait(
    "provider",
    `the authorization is not used up to ${at} and can be until ${validBefore.toISOString()}`,
    { until: addMs(later, FINALITY_POLL_MS) },
  );
}

function never(
  situation: ChainSituation,
  why: "canceled" | "expired" | "reverted",
  reason: string,
): Decision {
  const [other] = situation.intent.repeatConfirmed ? [] : situation.siblings;
  const paidBy = other === undefined ? "" : `, and its purchase was paid by ${other.chargeId}`;
  return {
    kind: "fail_terminal",
    why,
    reason: `${reason}: it can never settle${paidBy}`,
    advice:
      other === undefined
        ? "Nothing was paid. Sign a new authorization under a new intent if it is still wanted."
        : "The purchase is paid: neither retry this row nor mint a new intent for it.",
    objects: [],
    absence: null,
  };
}

/** Only a hash: it says what became of that transaction, and a replaced one is not found by it. */
function byHash(situation: ChainSituation, readTo: FinalBlock, now: Date): Decision {
  const { intent, transaction } = situation;
  const hash = intent.txHash ?? "";
  const status = transaction?.status ?? "unknown";
  const soon = { until: addMs(now, FINALITY_POLL_MS), objects: [hash] };
  if (status === "pending" || (transaction?.final === false && status !== "unknown")) {
    return wait("provider", `transaction ${hash} is not final yet`, soon);
  }
  if (status === "unknown") {
    const likely = suggestion(situation);
    if (likely !== null) return likely;
    const detail =
      `transaction ${hash} is in no block up to ${String(readTo.number)}: it was dropped or ` +
      "replaced by another hash. Map nonce and validBefore, which prove either";
    return unproven([{ what: "id", detail, ids: [hash] }], "the transaction is not on chain");
  }
  if (status === "succeeded") {
    const detail =
      `transaction ${hash} succeeded and moved nothing of this row: a call inside it may have ` +
      "failed, or it pays somebody else";
    return unproven([{ what: "mark", detail, ids: [hash] }], "the transaction is no payment of it");
  }
  // Reverted: the same authorization may still be submitted by anybody until it ends.
  const { validBefore } = intent;
  if (validBefore !== null && readTo.time < validBefore) {
    const until = addMs(validBefore, FINALITY_POLL_MS);
    return wait("provider", `${hash} was reverted, and its authorization is still valid`, {
      until,
      objects: [hash],
    });
  }
  return suggestion(situation) ?? never(situation, "reverted", `transaction ${hash} was reverted`);
}

function byLikeness(situation: ChainSituation): Decision {
  const likely = suggestion(situation);
  if (likely !== null) return likely;
  const { alike } = situation;
  const ids = alike.map((charge) => charge.chargeId);
  const detail =
    alike.length > 1
      ? `${String(alike.length)} transfers look like it: map nonce or the transaction's hash`
      : "the row has neither nonce nor hash: nothing on chain can be told to be it, or not to be";
  return unproven([{ what: "mark", detail, ids }], "nothing names its payment on chain");
}

/** Exactly one transfer looks like it: told, never written. */
function suggestion(situation: ChainSituation): Decision | null {
  const [only, ...more] = situation.alike;
  if (only === undefined || more.length > 0) return null;
  return {
    kind: "record",
    charge: only,
    basis: "likeness",
    notes: ["payer, payee, token, amount and time agree, and no nonce or hash proves it"],
    reason: `${only.chargeId} looks like it and belongs to no row`,
    onlySuggested: true,
  };
}
