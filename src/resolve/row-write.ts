/** What a decision writes into the team's row: only the columns it must (invariant 4). */
import { createHash } from "node:crypto";

import type { IntentRow } from "../core/intent.ts";
import type { Db } from "../store/pool.ts";
import { targetState } from "./decision.ts";
import type { FailedWhy, WritingDecision } from "./decision.ts";
import type { RowWrite } from "./deps.ts";
import type { OwnCharge, OwnPayment, Situation } from "./situation.ts";

/**
 * How the team spells charges in its rows: the charge itself, or what it belongs to (the payment
 * intent at Stripe, the transaction's hash alone on chain).
 */
export type ChargeSpelling = "charge" | "payment_intent";

// Enough rows to see a habit; they come from anywhere in the table, in no order.
const HABIT_ROWS_MAX = 20;

/**
 * How the account's recorded rows name their charge: `payment_intent` when most of a sample do.
 * Code of the team may look a stored id up by its prefix, so a resolved row follows its neighbours.
 */
export async function chargeSpelling(
  db: Db,
  row: { readonly accountId: string; readonly scope: string },
): Promise<ChargeSpelling> {
  const found = await db.query<{ payment_intents: bigint; total: bigint }>(
    `select count(*) filter (where s.charge_id ~ '^(pi_|0x[0-9a-f]{64}$)') as payment_intents,
            count(*) as total
       from (select i.charge_id
               from tallyd.intent i
              where i.state = 'recorded'
                and i.account_id = $1
                and i.scope = $2
                and i.charge_id is not null
              limit $3) s`,
    [row.accountId, row.scope, HABIT_ROWS_MAX],
  );
  const habit = found.rows[0];
  if (habit === undefined || habit.total === 0n) return "charge";
  return habit.payment_intents * 2n > habit.total ? "payment_intent" : "charge";
}

/** What a decision about a payment at Stripe writes. `row` was re-read and decided on. */
export function stripeSet(input: {
  readonly row: IntentRow;
  readonly situation: Situation;
  readonly decision: WritingDecision;
  readonly spelling: ChargeSpelling;
}): RowWrite["set"] {
  const { row, decision } = input;
  const state = targetState(decision);
  switch (decision.kind) {
    case "record":
      return { state, ...recordedFields(input, decision.charge) };
    case "fail_terminal":
      // What the team noted about its own failure stays.
      return row.responseKind === "none"
        ? { state, response: failureResponse(input.situation, decision) }
        : { state };
    case "fail_retryable":
      return { state };
  }
}

function recordedFields(
  input: {
    readonly row: IntentRow;
    readonly situation: Situation;
    readonly spelling: ChargeSpelling;
  },
  charge: OwnCharge,
): Omit<RowWrite["set"], "state"> {
  const { row, situation, spelling } = input;
  const payment = situation.payments.find((one) => one.id === charge.paymentIntent);
  const named = [charge.chargeId, charge.paymentIntent].includes(row.chargeId);
  const usual =
    spelling === "payment_intent" ? (charge.paymentIntent ?? charge.chargeId) : charge.chargeId;
  // A row that names the payment already, in whatever spelling, keeps its own.
  const chargeId = named && row.chargeId !== null ? row.chargeId : usual;
  return {
    ...(chargeId === row.chargeId ? {} : { chargeId }),
    response: successResponse(charge, payment, chargeId),
    fingerprint: seedFingerprint(row),
  };
}

/**
 * The provider's object, reduced, in Stripe's own shape so that code which replays a stored
 * response finds what it looks for. Stripe writes amounts as whole numbers.
 */
function successResponse(
  charge: OwnCharge,
  payment: OwnPayment | undefined,
  id: string,
): Record<string, unknown> {
  const asPayment = id === charge.paymentIntent;
  return {
    id,
    object: asPayment ? "payment_intent" : "charge",
    amount: wireAmount(charge.amount),
    ...(asPayment
      ? { amount_received: wireAmount(charge.amountCaptured) }
      : { amount_captured: wireAmount(charge.amountCaptured) }),
    currency: charge.currency,
    status: asPayment ? (payment?.status ?? "succeeded") : charge.status,
    payment_intent: charge.paymentIntent,
    latest_charge: charge.chargeId,
    resolved_by: "tallyd",
  };
}

function failureResponse(
  situation: Situation,
  decision: Extract<WritingDecision, { kind: "fail_terminal" }>,
): Record<string, unknown> {
  const payment = situation.payments.at(-1);
  return {
    ...(payment === undefined
      ? {}
      : { id: payment.id, object: "payment_intent", status: payment.status }),
    error: {
      type: decision.why === "declined" ? "card_error" : "tallyd_resolution",
      code: failureCode(situation, decision.why),
      message: decision.reason,
      advice: decision.advice,
    },
    resolved_by: "tallyd",
  };
}

function failureCode(situation: Situation, why: FailedWhy): string {
  if (why === "absent") return "never_reached_stripe";
  if (why === "canceled") return "canceled";
  const codes = [...situation.charges, ...situation.payments].map((object) => object.failureCode);
  return codes.findLast((code) => code !== null) ?? "declined";
}

/**
 * The documented fingerprint: SHA-256 of `json.dumps({amount, currency, intent_id},
 * sort_keys=True)`, spelled as Python spells it.
 */
export function seedFingerprint(row: Pick<IntentRow, "amount" | "currency" | "intentId">): string {
  const text =
    `{"amount": ${String(row.amount)}, "currency": ${pythonString(row.currency)}, ` +
    `"intent_id": ${pythonString(row.intentId)}}`;
  return createHash("sha256").update(text, "utf8").digest("hex");
}

function pythonString(text: string): string {
  // Python's json.dumps escapes everything beyond ASCII.
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Minor units as JSON's number where it holds them exactly, else their digits: never rounded. */
export function wireAmount(minor: bigint): number | string {
  const number = Number(minor);
  return Number.isSafeInteger(number) ? number : minor.toString();
}
