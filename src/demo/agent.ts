/** An agent that pays: it keeps rows in the team's table and calls Stripe with the official SDK. */
import type { Pool } from "pg";
import Stripe from "stripe";

/** What an agent works with. */
export interface AgentDeps {
  readonly pool: Pool;
  readonly stripe: Stripe;
  /** Equal seeds tell the same story. */
  readonly random: () => number;
}

/** One purchase as its row will say it. */
export interface Purchase {
  readonly intentId: string;
  readonly account: string;
  readonly amount: number;
  readonly currency: string;
  readonly key: string;
  readonly customer: string;
  /** `null`: the team kept no order number. */
  readonly reference: string | null;
}

/** A client for the stand-in; its own retries are off, since the agents do the mistakes. */
export function agentStripe(url: string, key: string): Stripe {
  const { hostname, port } = new URL(url);
  return new Stripe(key, {
    host: hostname,
    port: Number(port),
    protocol: "http",
    maxNetworkRetries: 0,
    telemetry: false,
  });
}

/** Writes the row with its key before anything is sent, as the payment state machine asks. */
export async function mint(
  deps: AgentDeps,
  purchase: Purchase,
  row: {
    readonly state?: string;
    readonly kind?: string;
    readonly chargeId?: string;
    readonly ageHours?: number;
  } = {},
): Promise<void> {
  await deps.pool.query(
    `insert into payment_intents (intent_id, account_id, operation, amount, currency,
       idempotency_key, state, charge_id, reference, customer, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() - $11 * interval '1 hour')`,
    [
      purchase.intentId,
      purchase.account,
      row.kind ?? "charge",
      purchase.amount,
      purchase.currency,
      purchase.key,
      row.state ?? "key_minted",
      row.chargeId ?? null,
      purchase.reference,
      purchase.customer,
      row.ageHours ?? 0,
    ],
  );
}

/** Moves the row on, with the provider's answer where there is one. */
export async function move(
  deps: AgentDeps,
  intentId: string,
  state: string,
  answer?: { readonly chargeId?: string | null; readonly response?: unknown },
): Promise<void> {
  await deps.pool.query(
    `update payment_intents
        set state = $2,
            charge_id = coalesce($3, charge_id),
            response_json = coalesce($4, response_json),
            updated_at = now()
      where intent_id = $1`,
    [
      intentId,
      state,
      answer?.chargeId ?? null,
      answer?.response === undefined ? null : JSON.stringify(answer.response),
    ],
  );
}

/** What a call may differ in from the purchase. */
export interface CallOptions {
  readonly key?: string;
  readonly amount?: number;
  readonly card?: string;
  readonly intentMark?: string;
  readonly manualCapture?: boolean;
}

/** Creates and confirms a payment intent; throws what the SDK throws. */
export async function pay(
  deps: AgentDeps,
  purchase: Purchase,
  options: CallOptions = {},
): Promise<{ readonly paymentIntent: string; readonly charge: string; readonly status: string }> {
  const metadata: Record<string, string> = { intent_id: options.intentMark ?? purchase.intentId };
  if (purchase.reference !== null) metadata["reference"] = purchase.reference;
  const made = await deps.stripe.paymentIntents.create(
    {
      amount: options.amount ?? purchase.amount,
      currency: purchase.currency,
      customer: purchase.customer,
      payment_method: options.card ?? "pm_card_visa",
      confirm: true,
      metadata,
      ...(options.manualCapture === true ? { capture_method: "manual" as const } : {}),
    },
    { idempotencyKey: options.key ?? purchase.key },
  );
  return { paymentIntent: made.id, charge: chargeOf(made), status: made.status };
}

function chargeOf(intent: Stripe.PaymentIntent): string {
  const { latest_charge: charge } = intent;
  return typeof charge === "string" ? charge : (charge?.id ?? "");
}

/** Creates a payment intent and has a card declined on it; answers its id. It can still be paid. */
export async function payDeclined(deps: AgentDeps, purchase: Purchase): Promise<string> {
  const made = await deps.stripe.paymentIntents.create(
    {
      amount: purchase.amount,
      currency: purchase.currency,
      customer: purchase.customer,
      metadata: { intent_id: purchase.intentId, reference: purchase.reference ?? "" },
    },
    { idempotencyKey: purchase.key },
  );
  await deps.stripe.paymentIntents
    .confirm(made.id, { payment_method: "pm_card_chargeDeclined" })
    .catch(() => undefined);
  return made.id;
}

/** Pays a declined payment intent by another card. */
export async function payByOtherCard(deps: AgentDeps, paymentIntent: string): Promise<void> {
  await deps.stripe.paymentIntents.confirm(paymentIntent, { payment_method: "pm_card_visa" });
}

/** The whole honest way: mint, mark, call, record. */
export async function payHonestly(deps: AgentDeps, purchase: Purchase): Promise<string> {
  await mint(deps, purchase);
  await move(deps, purchase.intentId, "in_flight");
  const paid = await pay(deps, purchase);
  await move(deps, purchase.intentId, "recorded", {
    chargeId: paid.charge,
    response: { id: paid.paymentIntent, object: "payment_intent", status: paid.status },
  });
  return paid.charge;
}
