import type { ChargeFact, PaymentIntentFact } from "../../core/facts.ts";
import { hashedText, readMarks } from "./marks.ts";
import { joinParts, unreadable, unreadableShape, versionOf } from "./part.ts";
import type { Part, ReadContext, Refetch } from "./part.ts";
import { readCharge } from "./read-charge.ts";
import { idSchema, isAbsent, paymentIntentSchema, stubSchema } from "./wire.ts";
import type { z } from "zod";

type WireIntent = z.infer<typeof paymentIntentSchema>;

// The life of a payment intent; the order breaks ties inside one second (case B13).
const RANKS: Readonly<Record<string, number>> = {
  requires_payment_method: 1,
  requires_confirmation: 2,
  requires_action: 3,
  processing: 4,
  requires_capture: 5,
  canceled: 6,
  succeeded: 7,
};

const EXPECTED: Readonly<Record<string, string>> = {
  "payment_intent.succeeded": "succeeded",
  "payment_intent.canceled": "canceled",
  "payment_intent.processing": "processing",
  "payment_intent.requires_action": "requires_action",
};

// Methods that settle days after the confirmation (Stripe's documentation).
const ASYNCHRONOUS: ReadonlySet<string> = new Set([
  "ach_credit_transfer",
  "ach_debit",
  "acss_debit",
  "au_becs_debit",
  "bacs_debit",
  "boleto",
  "customer_balance",
  "konbini",
  "multibanco",
  "nz_bank_account",
  "oxxo",
  "sepa_debit",
  "sofort",
  "us_bank_account",
]);

/**
 * Reads a `payment_intent` object of any version: charges nested in `charges.data` or expanded in
 * `latest_charge` become facts of their own; a succeeded intent that only names its charge yields
 * a derived one (cases B07, B22, B23).
 */
export function readPaymentIntent(object: unknown, context: ReadContext): Part {
  const parsed = paymentIntentSchema.safeParse(object);
  if (!parsed.success) return unreadableShape(object, parsed.error);
  const intent = parsed.data;
  const contradiction = contradictionOf(intent, context.eventType);
  if (contradiction !== null) return unreadable(intent.id, contradiction);
  const latest = latestChargeOf(intent);
  if (latest === undefined) {
    return unreadable(
      intent.id,
      "payment_intent of unknown shape: latest_charge is neither an id nor a charge",
    );
  }
  const fact = intentFact(intent, latest, context);
  const nested = nestedCharges(intent).map((charge) =>
    readCharge(charge, { ...context, eventType: null }),
  );
  const own: Part = {
    facts: [fact, ...derivedCharge(fact, nested, context)],
    refetch: chargeless(fact),
    unreadable: null,
  };
  return joinParts(own, nested);
}

function contradictionOf(intent: WireIntent, eventType: string | null): string | null {
  const expected = eventType === null ? undefined : EXPECTED[eventType];
  if (expected !== undefined && expected !== intent.status) {
    return `${String(eventType)} carries a payment intent of status ${intent.status}`;
  }
  if (intent.status === "succeeded" && (intent.amount_received ?? 0n) === 0n) {
    return "payment intent says succeeded and nothing received";
  }
  return null;
}

/** The id of the newest attempt; null: there is none; undefined: the shape is not known. */
function latestChargeOf(intent: WireIntent): string | null | undefined {
  const latest = intent.latest_charge;
  if (isAbsent(latest)) {
    // Before 2022-11-15 the charges are nested, newest first.
    const newest = stubSchema.safeParse(intent.charges?.data[0]);
    return newest.success ? newest.data.id : null;
  }
  const id = idSchema.safeParse(latest);
  if (id.success) return id.data;
  const expanded = stubSchema.safeParse(latest);
  return expanded.success ? expanded.data.id : undefined;
}

function nestedCharges(intent: WireIntent): readonly unknown[] {
  const expanded =
    typeof intent.latest_charge === "object" && intent.latest_charge !== null
      ? [intent.latest_charge]
      : [];
  return [...expanded, ...(intent.charges?.data ?? [])];
}

function intentFact(
  intent: WireIntent,
  latestCharge: string | null,
  context: ReadContext,
): PaymentIntentFact {
  const types = intent.payment_method_types ?? [];
  return {
    kind: "payment_intent",
    scope: context.scope,
    id: intent.id,
    amount: intent.amount,
    amountReceived: intent.amount_received ?? 0n,
    amountCapturable: intent.amount_capturable ?? 0n,
    currency: intent.currency,
    status: intent.status,
    customer: intent.customer ?? intent.customer_account,
    payee: intent.transfer_data?.destination ?? intent.on_behalf_of,
    purpose: hashedText(intent.description),
    invoice: intent.invoice,
    latestCharge,
    failureCode: intent.last_payment_error?.code ?? intent.last_payment_error?.type ?? null,
    cancellationReason: intent.cancellation_reason,
    asynchronous:
      intent.status === "processing" ||
      (types.length > 0 && types.every((type) => ASYNCHRONOUS.has(type))),
    createdAt: intent.created,
    ...readMarks(intent.metadata ?? null, context.settings),
    ...versionOf(context, RANKS[intent.status] ?? 0),
  };
}

/** The paid charge of a succeeded intent, when the object names it and does not carry it. */
function derivedCharge(
  intent: PaymentIntentFact,
  nested: readonly Part[],
  context: ReadContext,
): ChargeFact[] {
  const chargeId = intent.latestCharge;
  if (intent.status !== "succeeded" || chargeId === null) return [];
  const carried = nested.some((part) =>
    part.facts.some((fact) => fact.kind === "charge" && fact.chargeId === chargeId),
  );
  const refused = nested.some((part) => part.refetch.some((entry) => entry.id === chargeId));
  // A carried charge that contradicts itself is fetched; until then nothing is made up for it.
  if (carried || refused) return [];
  // The event's time is that of the success; an intent made last week may be paid today.
  const paidAt =
    context.eventType === "payment_intent.succeeded" ? context.versionAt : intent.createdAt;
  return [
    {
      kind: "charge",
      rail: "stripe",
      scope: intent.scope,
      chargeId,
      paymentIntent: intent.id,
      amount: intent.amount,
      amountCaptured: intent.amountReceived,
      amountRefunded: 0n,
      currency: intent.currency,
      status: "succeeded",
      captured: true,
      refunded: false,
      disputed: false,
      payer: intent.customer,
      payee: intent.payee,
      instrument: null,
      purpose: intent.purpose,
      invoice: intent.invoice,
      transfer: null,
      sourceTransfer: null,
      failureCode: null,
      derived: true,
      createdAt: paidAt,
      intentMark: intent.intentMark,
      reference: intent.reference,
      keyMark: intent.keyMark,
      owned: intent.owned,
      ...versionOf(context, DERIVED_RANK),
    },
  ];
}

// The rank of a succeeded charge: see read-charge.ts.
const DERIVED_RANK = 3;

/** A success without a charge is "not yet": it is read again with back-off (case B23). */
function chargeless(intent: PaymentIntentFact): Refetch[] {
  if (intent.status !== "succeeded" || intent.latestCharge !== null) return [];
  return [{ id: intent.id, reason: "payment intent succeeded and names no charge yet" }];
}
