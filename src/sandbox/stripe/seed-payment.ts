import { makeCharge, putCharge } from "./charging.ts";
import { emit } from "./events.ts";
import type { Job } from "./job.ts";
import { bookSale } from "./ledger.ts";
import type { ChargeRecord, PaymentIntentRecord } from "./records.ts";
import { fieldsOnly, jobFor } from "./seed-options.ts";
import type { Fields, SeedOptions } from "./seed-options.ts";
import { BILLING_DETAILS } from "./test-cards.ts";
import type { World } from "./world.ts";

/** A charge to seed: any of its fields; default a paid and captured card charge of 20.00 usd. */
export type SeedCharge = Fields<ChargeRecord> & SeedOptions;

/** An intent to seed; `charge: false` leaves its charge out, an object decides its fields. */
export type SeedPaymentIntent = Fields<PaymentIntentRecord> &
  SeedOptions & { readonly charge?: SeedCharge | false };

const DEFAULT_AMOUNT = 2_000n;
/** Statuses in which an intent has a charge, and the status of that charge. */
const CHARGE_STATUS: Readonly<Record<string, string>> = {
  succeeded: "succeeded",
  requires_capture: "succeeded",
  processing: "pending",
};

function seedBooked(job: Job, seed: Fields<ChargeRecord>): ChargeRecord {
  const { world, space } = job;
  const amount = seed.amount ?? DEFAULT_AMOUNT;
  const draft = { currency: "usd", ...seed, amount };
  const charge = makeCharge(world, space, draft, BILLING_DETAILS);
  const unbooked = charge.paid && charge.captured && seed.balance_transaction === undefined;
  const entry = unbooked
    ? bookSale(world, space, charge, charge.created).id
    : charge.balance_transaction;
  return putCharge(world, space, { ...charge, balance_transaction: entry });
}

/** Seeds one attempt; with `payment_intent` it joins that intent, which keeps its latest charge. */
export function seedCharge(world: World, seed: SeedCharge): ChargeRecord {
  const job = jobFor(world, seed);
  const record = seedBooked(job, fieldsOnly(seed));
  const intent = job.space.intents.get(record.payment_intent ?? "");
  if (intent?.latest_charge === null) {
    job.space.intents.put({ ...intent, latest_charge: record.id }, world.clock.now());
  }
  if (seed.events === false) return record;
  const { cause } = job;
  emit(world, job.space, {
    type: `charge.${record.status}`,
    record,
    cause,
    created: record.created,
  });
  return record;
}

function intentDraft(job: Job, seed: SeedPaymentIntent): PaymentIntentRecord {
  const amount = seed.amount ?? DEFAULT_AMOUNT;
  const status = seed.status ?? "succeeded";
  return {
    id: seed.id ?? job.world.ids.next("pi"),
    object: "payment_intent",
    created: job.world.clock.seconds(),
    livemode: job.space.livemode,
    metadata: {},
    amount,
    amount_capturable: status === "requires_capture" ? amount : 0n,
    amount_received: status === "succeeded" ? amount : 0n,
    application_fee_amount: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: status === "requires_capture" ? "manual" : "automatic",
    confirmation_method: "automatic",
    currency: "usd",
    customer: null,
    description: null,
    invoice: null,
    last_payment_error: null,
    latest_charge: null,
    next_action: null,
    payment_method: null,
    payment_method_types: ["card"],
    receipt_email: null,
    shipping: null,
    status,
    transfer_data: null,
    ...fieldsOnly(seed, "charge"),
  };
}

function chargeOf(
  job: Job,
  intent: PaymentIntentRecord,
  seed: SeedPaymentIntent,
): ChargeRecord | null {
  const status = CHARGE_STATUS[intent.status];
  if (seed.charge === false || (seed.charge === undefined && status === undefined)) return null;
  const given = fieldsOnly(seed.charge ?? {});
  const partial = intent.status === "succeeded" && intent.amount_received < intent.amount;
  return seedBooked(job, {
    amount: intent.amount,
    amount_captured: intent.status === "requires_capture" ? 0n : intent.amount_received,
    captured: intent.status !== "requires_capture" && status !== undefined,
    ...(partial ? { amount_refunded: intent.amount - intent.amount_received } : {}),
    created: intent.created,
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    invoice: intent.invoice,
    metadata: intent.metadata,
    payment_intent: intent.id,
    payment_method_type: intent.payment_method_types[0] ?? "card",
    status: status ?? "failed",
    transfer_data: intent.transfer_data,
    ...given,
  });
}

const EVENTS_OF_STATUS: Readonly<Record<string, readonly [string | null, string]>> = {
  succeeded: ["charge.succeeded", "payment_intent.succeeded"],
  requires_capture: ["charge.succeeded", "payment_intent.amount_capturable_updated"],
  processing: ["charge.pending", "payment_intent.processing"],
  requires_action: [null, "payment_intent.requires_action"],
  canceled: [null, "payment_intent.canceled"],
};

function tell(job: Job, intent: PaymentIntentRecord, charge: ChargeRecord | null): void {
  const { world, space, cause } = job;
  const created = intent.created;
  const opened: PaymentIntentRecord = {
    ...intent,
    status: "requires_payment_method",
    amount_received: 0n,
    amount_capturable: 0n,
    latest_charge: null,
    last_payment_error: null,
  };
  emit(world, space, { type: "payment_intent.created", record: opened, cause, created });
  const failed = charge?.status === "failed";
  const [chargeType, intentType] = failed
    ? (["charge.failed", "payment_intent.payment_failed"] as const)
    : (EVENTS_OF_STATUS[intent.status] ?? [null, null]);
  if (chargeType !== null && charge !== null) {
    emit(world, space, { type: chargeType, record: charge, cause, created: charge.created });
  }
  if (intentType !== null) emit(world, space, { type: intentType, record: intent, cause, created });
}

/** Seeds an intent in any state, with the charge and the events that belong to that state. */
export function seedPaymentIntent(world: World, seed: SeedPaymentIntent): PaymentIntentRecord {
  const job = jobFor(world, seed);
  const draft = intentDraft(job, seed);
  const charge = chargeOf(job, draft, seed);
  const latest = seed.latest_charge === undefined ? (charge?.id ?? null) : seed.latest_charge;
  const intent = job.space.intents.put({ ...draft, latest_charge: latest }, world.clock.now());
  if (seed.events !== false) tell(job, intent, charge);
  return intent;
}
