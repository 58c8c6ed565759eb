import type { ChargeFact } from "../../core/facts.ts";
import { hashedText, readMarks } from "./marks.ts";
import { joinParts, unreadable, unreadableShape, versionOf } from "./part.ts";
import type { Part, ReadContext } from "./part.ts";
import { readRefund } from "./read-refund.ts";
import { chargeSchema, methodDetailsSchema } from "./wire.ts";
import type { z } from "zod";

type WireCharge = z.infer<typeof chargeSchema>;

const RANKS = { pending: 1, failed: 2, succeeded: 3 } as const;

// What the type of an event says about its charge; a charge that says otherwise is refetched.
const EXPECTED: Readonly<Record<string, WireCharge["status"]>> = {
  "charge.succeeded": "succeeded",
  "charge.captured": "succeeded",
  "charge.failed": "failed",
  "charge.pending": "pending",
};

/**
 * Reads a `charge` object (`ch_` or `py_`) and the refunds that older versions nest in it.
 * An unknown status is not kept: whether money moved must be known, so the charge is refetched.
 */
export function readCharge(object: unknown, context: ReadContext): Part {
  const parsed = chargeSchema.safeParse(object);
  if (!parsed.success) return unreadableShape(object, parsed.error);
  const charge = parsed.data;
  const contradiction = contradictionOf(charge, context.eventType);
  if (contradiction !== null) return unreadable(charge.id, contradiction);
  const own: Part = { facts: [chargeFact(charge, context)], refetch: [], unreadable: null };
  // The event's type speaks about the charge, not about the refunds inside of it. A paged list
  // needs no second read: amount_refunded is the running total of all of them.
  const nested = { ...context, eventType: null };
  return joinParts(
    own,
    (charge.refunds?.data ?? []).map((refund) => readRefund(refund, nested)),
  );
}

function contradictionOf(charge: WireCharge, eventType: string | null): string | null {
  if (charge.status === "succeeded" && charge.paid === false) {
    return "charge says succeeded and paid: false";
  }
  const expected = eventType === null ? undefined : EXPECTED[eventType];
  if (expected !== undefined && expected !== charge.status) {
    return `${String(eventType)} carries a charge of status ${charge.status}`;
  }
  return null;
}

function chargeFact(charge: WireCharge, context: ReadContext): ChargeFact {
  const captured = charge.captured ?? charge.status === "succeeded";
  return {
    kind: "charge",
    rail: "stripe",
    scope: context.scope,
    chargeId: charge.id,
    paymentIntent: charge.payment_intent,
    amount: charge.amount,
    // Before the field existed a partial capture showed as a refund of the rest.
    amountCaptured: charge.amount_captured ?? (movedMoney(charge, captured) ? charge.amount : 0n),
    amountRefunded: charge.amount_refunded ?? 0n,
    currency: charge.currency,
    status: charge.status,
    // An authorization is status succeeded with captured: false; no money moved yet.
    captured: movedMoney(charge, captured),
    refunded: charge.refunded ?? false,
    disputed: charge.disputed ?? false,
    payer: charge.customer,
    payee: charge.transfer_data?.destination ?? charge.on_behalf_of ?? charge.destination,
    instrument: instrumentOf(charge),
    purpose: hashedText(charge.description),
    invoice: charge.invoice,
    transfer: charge.transfer,
    sourceTransfer: charge.source_transfer,
    failureCode: charge.failure_code,
    derived: false,
    createdAt: charge.created,
    ...readMarks(charge.metadata ?? null, context.settings),
    ...versionOf(context, RANKS[charge.status]),
  };
}

/** A pending or failed charge may say `captured: true`: that it will be, not that it was. */
function movedMoney(charge: WireCharge, captured: boolean): boolean {
  return charge.status === "succeeded" && captured;
}

function instrumentOf(charge: WireCharge): string | null {
  const details = charge.payment_method_details ?? {};
  const type = details["type"];
  const own = typeof type === "string" && Object.hasOwn(details, type) ? details[type] : null;
  const method = methodDetailsSchema.safeParse(own);
  const fingerprint = method.success ? method.data?.fingerprint : null;
  return hashedText(fingerprint ?? charge.source?.fingerprint);
}
