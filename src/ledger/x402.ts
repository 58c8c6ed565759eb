/**
 * The state machine of a payment over x402. One authorization is signed and stored before anybody
 * sees it, and only it is sent, as often as needed: the token takes a nonce once. A new one is
 * signed only after the chain has proven that the old one is dead.
 */
import { unreachable } from "../core/errors.ts";
import { refuse, replay } from "./conclude.ts";
import type { Payment, Step } from "./conclude.ts";
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { objectOf, requireRail } from "./intent.ts";
import { limitsOf } from "./limits.ts";
import type { Limits } from "./limits.ts";
import { moveIntent, readIntent, requireCommitted } from "./table.ts";
import type { RowDeps } from "./table.ts";
import { runTurns } from "./turns.ts";
import type { ExecuteOptions } from "./turns.ts";
import { requireUntouched } from "./untouched.ts";
import { lookAtNonce, newestBlock } from "./x402-chain.ts";
import type { ChainProvider, Finality, NonceState } from "./x402-chain.ts";
import { canceled, failFor, record, unsigned } from "./x402-end.ts";
import type { X402StepName } from "./x402-end.ts";
import { sendPayment, sendRequest } from "./x402-http.ts";
import {
  deadMetadata,
  deadNonces,
  paymentIdOf,
  signedMetadata,
  storedPayment,
} from "./x402-row.ts";
import type { StoredPayment } from "./x402-row.ts";
import { signAuthorization } from "./x402-sign.ts";
import type { X402Signer } from "./x402-sign.ts";
import { demandOf, paymentOf, requirementFor } from "./x402-wire.ts";
import type { Demand, Requirement } from "./x402-wire.ts";

/** What a payment over x402 needs. */
export interface X402Deps extends RowDeps {
  readonly fetch: typeof fetch;
  readonly signer: X402Signer;
  /** Endpoints of the intent's chain, best of two vendors: a proof of absence needs all of them. */
  readonly chains: readonly ChainProvider[];
  /** Blocks that count as final; default `safe`, as tallyd's. */
  readonly finality?: Finality;
  readonly limits?: Partial<Limits>;
  /** Called after each step, for traces and for tests of what a crash there leaves behind. */
  readonly onStep?: (step: X402StepName, intentId: string) => void | Promise<void>;
}

// Facilitators refuse an authorization that ends within six seconds; blocks take two.
const VALID_MARGIN_S = 8;
// Each was signed, sent and outlived; a server that settles none of so many settles none.
const SIGNATURES_MAX = 5;
// A block or two later the chain knows more.
const LOOK_AGAIN_MS = 5_000;

/**
 * Pays an intent of the rail `evm` over x402, or says how far its payment is. May be called any
 * number of times, by any number of workers: money moves at most once. Throws {@link LedgerError}.
 */
export async function payX402(
  deps: X402Deps,
  intentId: string,
  options: ExecuteOptions = {},
): Promise<Payment> {
  const limits = limitsOf(deps.limits);
  return runTurns(intentId, options, async () => {
    const intent = await readIntent(deps, intentId);
    requireRail(intent, "evm");
    requireUntouched(intent);
    await deps.onStep?.("read", intentId);
    return takeTurn(deps, intent, limits);
  });
}

async function takeTurn(deps: X402Deps, intent: LedgerIntent, limits: Limits): Promise<Step> {
  const stored = storedPayment(intent);
  switch (intent.state) {
    case "recorded":
      return { kind: "paid", payment: replay(intent) };
    case "failed_terminal":
      throw refuse(intent.intentId, intent.response, "it failed for good");
    case "key_minted":
    case "failed_retryable":
      return stored === null
        ? begin(deps, intent, limits)
        : reconcile(deps, intent, stored, limits);
    case "in_flight":
      if (intent.sinceMs < limits.inFlightMs) return { kind: "held" };
      // Its worker died. What was not stored was not sent.
      await moveIntent(deps, intent, { to: stored === null ? "failed_retryable" : "reconciling" });
      return { kind: "again" };
    case "reconciling":
      if (stored !== null) return reconcile(deps, intent, stored, limits);
      throw new LedgerError(
        "conflict",
        `${intent.intentId} is in doubt and holds no signed payment: a person has to look`,
        { intentId: intent.intentId },
      );
    default:
      return unreachable(intent.state);
  }
}

/** Asks for the price, is admitted, signs, stores, and only then sends. */
async function begin(deps: X402Deps, intent: LedgerIntent, limits: Limits): Promise<Step> {
  const { intentId } = intent;
  const signed = deadNonces(intent).length;
  if (intent.ageMs >= limits.horizonMs || signed >= SIGNATURES_MAX) {
    const message = `${signed} payments of it were signed and none was settled: mint a new intent`;
    return failFor(deps, intent, "given_up", message);
  }
  const demand = await demandFor(deps, intent, limits);
  const requirement = requirementFor(intent, demand);
  const block = await firstBlock(deps, requirement.network);
  await deps.onStep?.("asked", intentId);
  const since = performance.now();
  const held = await moveIntent(deps, intent, { to: "in_flight" });
  if (held === null) return { kind: "again" };
  await requireCommitted(deps, intentId);
  await deps.onStep?.("admitted", intentId);
  const stored = await sign(deps, held, { demand, requirement, block }).catch((error: unknown) =>
    unsigned(deps, held, error),
  );
  const { nonce, validBefore, payer } = stored.mark;
  const kept = await moveIntent(deps, held, {
    to: "in_flight",
    columns: {
      ...{ payer, nonce, payment_id: paymentIdOf(intent) },
      valid_before: new Date(validBefore * 1_000),
    },
    metadata: signedMetadata(intent, stored),
  });
  // Somebody else took over: what was signed here is forgotten, and nobody has seen it.
  if (kept === null) return { kind: "again" };
  await deps.onStep?.("signed", intentId);
  if (performance.now() - since > limits.holdMs) {
    return doubt(deps, kept, { said: "it was held too long", goods: null, stored }, limits);
  }
  return send(deps, kept, stored, limits);
}

async function demandFor(deps: X402Deps, intent: LedgerIntent, limits: Limits): Promise<Demand> {
  const { intentId } = intent;
  let status: number;
  try {
    const response = await sendRequest(deps.fetch, intent, null, limits.timeoutMs);
    await response.body?.cancel();
    const demand = demandOf(response.headers.get("payment-required"));
    if (response.status === 402 && demand !== null) return demand;
    status = response.status;
  } catch (error) {
    if (error instanceof LedgerError) throw error;
    throw new LedgerError("retryable", `${intentId}: the server could not be asked`, {
      intentId,
      cause: error,
    });
  }
  throw new LedgerError(
    "retryable",
    `${intentId}: the server answered ${status} without a demand for payment; nothing was signed`,
    { intentId },
  );
}

/** Where the search for the payment's log has to begin: the lowest of the endpoints' heads. */
async function firstBlock(deps: X402Deps, network: string): Promise<number> {
  const heads = await Promise.all(deps.chains.map((chain) => newestBlock(chain, network)));
  if (heads.length > 0) return Math.min(...heads);
  throw new LedgerError("invalid", "no endpoint of the chain was given: chains is empty");
}

async function sign(
  deps: X402Deps,
  held: LedgerIntent,
  asked: { readonly demand: Demand; readonly requirement: Requirement; readonly block: number },
): Promise<StoredPayment> {
  const { demand, requirement, block } = asked;
  const { network, asset } = requirement;
  const signed = await signAuthorization(deps.signer, requirement, held.now);
  const { nonce, validBefore } = signed;
  const payer = deps.signer.address.toLowerCase();
  return {
    payment: paymentOf(demand, requirement, signed.payload, paymentIdOf(held)),
    mark: { network, asset, payer, nonce, validBefore, fromBlock: block },
  };
}

async function send(
  deps: X402Deps,
  held: LedgerIntent,
  stored: StoredPayment,
  limits: Limits,
): Promise<Step> {
  const answer = await sendPayment(deps.fetch, held, stored.payment, limits.timeoutMs);
  await deps.onStep?.("answered", held.intentId);
  const { goods, settlement } = answer;
  if (goods !== null && settlement?.success === true && settlement.transaction !== null) {
    const payment = await record(deps, held, settlement.transaction, goods);
    return { kind: "paid", payment };
  }
  return doubt(deps, held, { said: answer.said, goods, stored }, limits);
}

/** No word of a server settles a doubt: the nonce does. */
async function doubt(
  deps: X402Deps,
  held: LedgerIntent,
  about: {
    readonly said: string;
    readonly goods: JsonObject | null;
    readonly stored: StoredPayment;
  },
  limits: Limits,
): Promise<Step> {
  const { intentId } = held;
  const { said, goods, stored } = about;
  const response = goods === null ? {} : { response: { http: goods } };
  const doubted = await moveIntent(deps, held, { to: "reconciling", ...response });
  if (doubted === null) return { kind: "again" };
  await deps.onStep?.("doubted", intentId);
  const state = await look(deps, intentId, stored).catch(() => null);
  await deps.onStep?.("looked", intentId);
  if (state?.kind === "used") {
    const payment = await fetchGoods(deps, doubted, stored, state.transaction, limits);
    return { kind: "paid", payment };
  }
  if (state?.kind === "canceled") return canceled(deps, doubted);
  throw new LedgerError("unknown", `${intentId}: ${said}; the chain will tell`, {
    intentId,
    retryAfterMs: LOOK_AGAIN_MS,
  });
}

async function reconcile(
  deps: X402Deps,
  intent: LedgerIntent,
  stored: StoredPayment,
  limits: Limits,
): Promise<Step> {
  const { intentId } = intent;
  const state = await look(deps, intentId, stored);
  await deps.onStep?.("looked", intentId);
  switch (state.kind) {
    case "used":
      return {
        kind: "paid",
        payment: await fetchGoods(deps, intent, stored, state.transaction, limits),
      };
    case "canceled":
      return canceled(deps, intent);
    case "dead":
      await moveIntent(deps, intent, {
        to: "failed_retryable",
        columns: { nonce: null, valid_before: null },
        metadata: deadMetadata(intent, stored.mark.nonce),
      });
      return { kind: "again" };
    case "alive": {
      if (intent.now < stored.mark.validBefore - VALID_MARGIN_S) {
        const held = await moveIntent(deps, intent, { to: "in_flight" });
        return held === null ? { kind: "again" } : send(deps, held, stored, limits);
      }
      throw new LedgerError("unknown", `${intentId}: its authorization ends, not yet for good`, {
        intentId,
        retryAfterMs: LOOK_AGAIN_MS,
      });
    }
  }
}

function look(deps: X402Deps, intentId: string, stored: StoredPayment): Promise<NonceState> {
  return lookAtNonce(deps.chains, stored.mark, deps.finality ?? "safe").catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    const options = { intentId, retryAfterMs: LOOK_AGAIN_MS, cause: error };
    throw new LedgerError("unknown", `${intentId}: ${message}`, options);
  });
}

/** Paid, and the goods may not have come: the same payment again can move nothing more. */
async function fetchGoods(
  deps: X402Deps,
  intent: LedgerIntent,
  stored: StoredPayment,
  transaction: string,
  limits: Limits,
): Promise<Payment> {
  const kept = intent.response?.["http"];
  if (kept !== undefined) return record(deps, intent, transaction, objectOf(kept));
  const answer = await sendPayment(deps.fetch, intent, stored.payment, limits.timeoutMs);
  return record(deps, intent, transaction, answer.goods);
}
