import { emit } from "./events.ts";
import { bookSale } from "./ledger.ts";
import type { Cause, ChargeRecord, Metadata, Wire } from "./records.ts";
import type { Space } from "./space.ts";
import { spaceOf } from "./world.ts";
import type { World } from "./world.ts";

/** Everything about a charge that its maker may decide; the rest has plain values. */
export type ChargeDraft = Partial<Omit<ChargeRecord, "object" | "amount" | "currency">> & {
  readonly amount: bigint;
  readonly currency: string;
};

const AUTHORIZED: Wire = {
  advice_code: null,
  network_advice_code: null,
  network_decline_code: null,
  network_status: "approved_by_network",
  reason: null,
  risk_level: "normal",
  risk_score: 21,
  seller_message: "Payment complete.",
  type: "authorized",
};

const NO_METADATA: Metadata = {};

/** A charge record from a draft; by default paid and captured in full, not yet booked. */
export function makeCharge(
  world: World,
  space: Space,
  draft: ChargeDraft,
  billing: Wire,
): ChargeRecord {
  const type = draft.payment_method_type ?? "card";
  const status = draft.status ?? "succeeded";
  const captured = draft.captured ?? status === "succeeded";
  return {
    object: "charge",
    // Charges of other methods than cards have ids of another kind.
    id: world.ids.next(type === "card" ? "ch" : "py"),
    created: world.clock.seconds(),
    livemode: space.livemode,
    metadata: NO_METADATA,
    amount_captured: captured ? draft.amount : 0n,
    amount_refunded: 0n,
    balance_transaction: null,
    billing_details: billing,
    captured,
    customer: null,
    description: null,
    disputed: false,
    dispute: null,
    failure_code: null,
    failure_message: null,
    invoice: null,
    outcome: status === "succeeded" ? AUTHORIZED : null,
    paid: status === "succeeded",
    payment_intent: null,
    payment_method: null,
    payment_method_type: type,
    receipt_email: null,
    refunded: false,
    shipping: null,
    source_transfer: null,
    status,
    transfer: null,
    transfer_data: null,
    refundOutcome: "succeeded",
    ...draft,
  };
}

/** Stores a charge. */
export function putCharge(world: World, space: Space, charge: ChargeRecord): ChargeRecord {
  return space.charges.put(charge, world.clock.now());
}

/** Books a captured charge now and stores it with its ledger entry. */
export function bookNow(world: World, space: Space, charge: ChargeRecord): ChargeRecord {
  const entry = bookSale(world, space, charge, world.clock.seconds());
  return putCharge(world, space, { ...charge, balance_transaction: entry.id });
}

/**
 * Books a captured charge a little later, without a request of its own, and tells of it in
 * `charge.updated` (Stripe, asynchronous capture).
 */
export function bookLater(world: World, space: Space, chargeId: string): void {
  world.tracker.later(world.settings.asyncCaptureMs, () => {
    const before = space.charges.get(chargeId);
    if (before?.balance_transaction !== null) return;
    const record = bookNow(world, space, before);
    const cause: Cause = { requestId: null, idempotencyKey: null };
    emit(world, space, { type: "charge.updated", record, before, cause });
  });
}

/**
 * The mirror of a destination charge: the connected account sees the same money as `py_…`, tied
 * by the transfer. No event tells of it here.
 */
export function mirrorDestination(world: World, space: Space, charge: ChargeRecord): ChargeRecord {
  const destination = charge.transfer_data?.["destination"];
  if (typeof destination !== "string") return charge;
  const transfer = world.ids.next("tr");
  const connected = spaceOf(world, destination, space.livemode);
  const mirror = makeCharge(
    world,
    connected,
    {
      id: world.ids.next("py"),
      created: charge.created,
      amount: charge.amount,
      currency: charge.currency,
      source_transfer: transfer,
      payment_method_type: "stripe_account",
    },
    { address: null, email: null, name: null, phone: null, tax_id: null },
  );
  bookNow(world, connected, mirror);
  return { ...charge, transfer };
}
