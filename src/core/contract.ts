/**
 * The six answers that every decision is stored with (README.md, what it settles by itself):
 * identity, operation,
 * binding, admission, retention, uncertainty. Pure: built from the row and from what was decided.
 */
import { isChainScope } from "./chain.ts";
import { addMs } from "./clock.ts";
import { unreachable } from "./errors.ts";
import { formatAmount } from "./money.ts";
import type { RuleSettings } from "./settings.ts";
import type { IntentState } from "./states.ts";

/** The part of a row that the answers are built from. */
export interface ContractSubject {
  readonly intentId: string;
  readonly accountId: string;
  readonly scope: string;
  readonly operationId: string | null;
  readonly amount: bigint;
  readonly currency: string;
  readonly payee: string | null;
  readonly reference: string | null;
  readonly fingerprint: string | null;
  readonly idempotencyKey: string | null;
  readonly state: IntentState;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The six answers; each has a sentence for people and the facts behind it. */
export interface Contract {
  /** Which account and scope own it. */
  readonly identity: {
    readonly answer: string;
    readonly account: string;
    readonly scope: string;
    readonly intent: string;
  };
  /** Which logical purchase it is. */
  readonly operation: {
    readonly answer: string;
    readonly id: string | null;
    readonly reference: string | null;
  };
  /** What is fixed: amount, currency, payee. */
  readonly binding: {
    readonly answer: string;
    /** Minor units. */
    readonly amount: string;
    readonly currency: string;
    readonly payee: string | null;
    readonly fingerprint: string | null;
  };
  /** Who holds it, and what keeps others from starting it again. */
  readonly admission: {
    readonly answer: string;
    readonly state: IntentState;
    /** ISO 8601. */
    readonly since: string;
  };
  /** Is the key still protected by the provider's replay window? */
  readonly retention: {
    readonly answer: string;
    readonly key: string | null;
    readonly protectedUntil: string | null;
    readonly stillProtects: boolean;
  };
  /** What is not known. */
  readonly uncertainty: { readonly answer: string; readonly open: readonly string[] };
}

/** Builds the six answers. `open` names what is not known; empty: nothing. */
export function contractOf(input: {
  readonly intent: ContractSubject;
  readonly rules: Pick<RuleSettings, "retryHorizonMs">;
  readonly now: Date;
  readonly open: readonly string[];
}): Contract {
  const { intent, rules, now, open } = input;
  const ends = addMs(intent.createdAt, rules.retryHorizonMs);
  const key = intent.idempotencyKey;
  const stillProtects = key !== null && now < ends;
  const to = intent.payee === null ? "" : ` to ${intent.payee}`;
  return {
    identity: {
      answer: `account ${intent.accountId} in ${intent.scope}`,
      account: intent.accountId,
      scope: intent.scope,
      intent: intent.intentId,
    },
    operation: {
      answer:
        intent.reference === null
          ? "the row alone: it carries no reference"
          : `reference ${intent.reference}`,
      id: intent.operationId,
      reference: intent.reference,
    },
    binding: {
      answer: `${formatAmount(intent.amount, intent.currency)}${to}`,
      amount: String(intent.amount),
      currency: intent.currency,
      payee: intent.payee,
      fingerprint: intent.fingerprint,
    },
    admission: {
      answer: holder(intent.state),
      state: intent.state,
      since: intent.updatedAt.toISOString(),
    },
    // No window prunes a nonce: the contract refuses it for ever once it was used.
    retention: isChainScope(intent.scope)
      ? { answer: ON_CHAIN, key, protectedUntil: null, stillProtects: true }
      : {
          answer: retained(key, stillProtects, ends),
          key,
          protectedUntil: key === null ? null : ends.toISOString(),
          stillProtects,
        },
    uncertainty: { answer: open.length === 0 ? "nothing is open" : open.join("; "), open },
  };
}

const ON_CHAIN =
  "a nonce moves money once: the same authorization may be sent again, a new signature pays again";

function holder(state: IntentState): string {
  switch (state) {
    case "key_minted":
      return "nobody has started it; a worker may, with its key";
    case "in_flight":
      return "the worker that set it in flight; nobody else may start it";
    case "failed_retryable":
      return "nobody holds it; any worker may retry it with the same key";
    case "reconciling":
      return "nobody may send it again before it is resolved";
    case "recorded":
      return "closed: a retry replays the stored response";
    case "failed_terminal":
      return "closed: it must not be retried";
    default:
      return unreachable(state);
  }
}

function retained(key: string | null, stillProtects: boolean, ends: Date): string {
  if (key === null) return "the row has no key, so nothing protects a retry";
  return stillProtects
    ? `the key is replayed until ${ends.toISOString()}`
    : `the key may be pruned since ${ends.toISOString()}: the same key would charge again`;
}
