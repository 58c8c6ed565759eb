/**
 * The questions to ask before another attempt, answered from a row alone, without a network: may
 * this key be used for that, how long does it still protect, what must be looked up first.
 */
import { fingerprintOf } from "./fingerprint.ts";
import { isOnChain } from "./intent.ts";
import type { LedgerIntent, Operation } from "./intent.ts";
import { limitsOf } from "./limits.ts";
import type { Limits } from "./limits.ts";
import { storedPayment } from "./x402-row.ts";

/** What somebody wants to use a key for. */
export interface KeyUse {
  readonly intentId: string;
  readonly accountId: string;
  readonly operation: Operation;
  /** Minor units. */
  readonly amount: bigint;
  readonly currency: string;
  readonly idempotencyKey: string;
}

/** Whether a key may be used, and if not, why. */
export type KeyAnswer =
  | { readonly reusable: true; readonly why: string }
  | {
      readonly reusable: false;
      readonly why: string;
      readonly reason:
        | "other_operation"
        | "other_key"
        | "other_parameters"
        | "finished"
        | "in_progress"
        | "unknown"
        | "expired";
    };

/** How long a key still protects a retry. */
export interface Protection {
  readonly protects: boolean;
  /** Milliseconds until the ledger stops sending this key; 0: it has stopped. */
  readonly leftMs: number;
  /** When it stops. */
  readonly until: Date;
}

/** What has to happen before the intent is sent again. */
export type NextStep =
  /** Nothing: the stored answer is the answer. */
  | { readonly do: "replay"; readonly why: string }
  /** Nothing: the same key may be sent. */
  | { readonly do: "send_same_key"; readonly why: string }
  /** Another worker has it, for so long at most. */
  | { readonly do: "wait"; readonly forMs: number; readonly why: string }
  /** Look these up at the provider first; send nothing before that. */
  | { readonly do: "look_up"; readonly look: readonly string[]; readonly why: string }
  /** Do not send it again; decide anew, with a new intent if it is still wanted. */
  | { readonly do: "stop"; readonly why: string };

const MS_PER_SECOND = 1_000;

/** How long the key of this intent still protects a retry, by the age of its row. */
export function keyProtection(intent: LedgerIntent, limits: Partial<Limits> = {}): Protection {
  const { horizonMs } = limitsOf(limits);
  const leftMs = Math.max(0, horizonMs - intent.ageMs);
  return {
    protects: leftMs > 0,
    leftMs,
    until: new Date(intent.createdAt * MS_PER_SECOND + horizonMs),
  };
}

/** May the key of this intent be sent for that use, now? */
export function keyReusable(
  intent: LedgerIntent,
  use: KeyUse,
  limits: Partial<Limits> = {},
): KeyAnswer {
  const no = (
    reason: Exclude<KeyAnswer, { reusable: true }>["reason"],
    why: string,
  ): KeyAnswer => ({
    reusable: false,
    reason,
    why,
  });
  if (use.idempotencyKey !== intent.idempotencyKey) {
    return no("other_key", "the operation has another key, and a second one would pay again");
  }
  if (
    use.intentId !== intent.intentId ||
    use.accountId !== intent.accountId ||
    use.operation !== intent.operation
  ) {
    return no("other_operation", "one key stands for one operation of one account");
  }
  if (fingerprintOf(use) !== fingerprintOf(intent)) {
    return no("other_parameters", "amount or currency differ from what the key was minted for");
  }
  const next = nextStep(intent, limits);
  switch (next.do) {
    case "send_same_key":
      return { reusable: true, why: next.why };
    case "wait":
      return no("in_progress", next.why);
    case "look_up":
      return no(keyProtection(intent, limits).protects ? "unknown" : "expired", next.why);
    case "replay":
    case "stop":
      return no("finished", next.why);
  }
}

/** What must be looked up, or waited for, before another attempt. */
export function nextStep(intent: LedgerIntent, given: Partial<Limits> = {}): NextStep {
  const limits = limitsOf(given);
  switch (intent.state) {
    case "recorded":
      return { do: "replay", why: "it is paid, and its answer is stored" };
    case "failed_terminal":
      return {
        do: "stop",
        why: "it failed for good; a person or the planner decides what follows",
      };
    default:
      return isOnChain(intent) ? nextOnChain(intent, limits) : nextAtStripe(intent, limits);
  }
}

function nextAtStripe(intent: LedgerIntent, limits: Limits): NextStep {
  const { protects, until } = keyProtection(intent, limits);
  switch (intent.state) {
    case "key_minted":
    case "failed_retryable":
      if (protects) {
        const why = `nothing of it ran, and its key protects until ${until.toISOString()}`;
        return { do: "send_same_key", why };
      }
      return look(intent, "its key may be pruned, so that the same key would pay again");
    case "in_flight": {
      if (intent.chargeId !== null) {
        return look(intent, "the provider has it and was not done with it");
      }
      const forMs = limits.inFlightMs - intent.sinceMs;
      return forMs > 0
        ? { do: "wait", forMs, why: "another worker sent it and may still get its answer" }
        : look(intent, "its worker is gone, with its answer or without");
    }
    default:
      return look(intent, "an attempt may have run");
  }
}

/** Over x402 the nonce decides; before anything is signed there is nothing to look up. */
function nextOnChain(intent: LedgerIntent, limits: Limits): NextStep {
  const stored = storedPayment(intent);
  const forMs = limits.inFlightMs - intent.sinceMs;
  if (intent.state === "in_flight" && forMs > 0) {
    return { do: "wait", forMs, why: "another worker signs it or has sent it" };
  }
  if (stored !== null) {
    const { payer, nonce, asset, network } = stored.mark;
    return {
      do: "look_up",
      look: [`nonce ${nonce} of ${payer} at the token ${asset} on ${network}, and its logs`],
      why: "an authorization is signed, and whoever has it can settle it until it ends",
    };
  }
  if (intent.state === "reconciling") {
    return { do: "stop", why: "it is in doubt and holds no signed payment: a person has to look" };
  }
  const { protects, until } = keyProtection(intent, limits);
  return protects
    ? {
        do: "send_same_key",
        why: `nothing of it is signed; until ${until.toISOString()} it may be`,
      }
    : { do: "stop", why: "nothing of it was paid, and it is too old: mint a new intent" };
}

/** What to look at, strongest first: an id, then complete lists; never search. */
function look(intent: LedgerIntent, why: string): NextStep {
  const since = new Date(intent.createdAt * MS_PER_SECOND).toISOString();
  const known = intent.chargeId === null ? [] : [intent.chargeId];
  const lists: Readonly<Record<Operation, string>> = {
    charge: `payment intents made since ${since}, for the metadata intent_id=${intent.intentId}`,
    refund: `the payment's refunds, for the metadata intent_id=${intent.intentId}`,
    capture: "the payment intent that is to be captured",
  };
  return { do: "look_up", look: [...known, lists[intent.operation]], why };
}
