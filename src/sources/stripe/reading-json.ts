/**
 * The reduced form of an event's object as the inbox keeps it: the facts themselves, in JSON. What
 * is no fact was dropped before anything was stored, so personal data is never at rest.
 */
import { z } from "zod";

import type { Fact, Reading } from "../../core/facts.ts";

const amount = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform((digits) => BigInt(digits));
const time = z.iso.datetime().transform((value) => new Date(value));
const text = z.string();
const maybe = z.string().nullable();

const version = { versionAt: time, versionRank: z.int() };
const marks = {
  intentMark: maybe,
  reference: maybe,
  keyMark: maybe,
  owned: z.enum(["yes", "no", "unknown"]),
};

const paymentIntent = z.object({
  kind: z.literal("payment_intent"),
  scope: text,
  id: text,
  amount,
  amountReceived: amount,
  amountCapturable: amount,
  currency: text,
  status: text,
  customer: maybe,
  payee: maybe,
  purpose: maybe,
  invoice: maybe,
  latestCharge: maybe,
  failureCode: maybe,
  cancellationReason: maybe,
  asynchronous: z.boolean(),
  createdAt: time,
  ...marks,
  ...version,
});

const charge = z.object({
  kind: z.literal("charge"),
  rail: z.enum(["stripe", "evm"]),
  scope: text,
  chargeId: text,
  paymentIntent: maybe,
  amount,
  amountCaptured: amount,
  amountRefunded: amount,
  currency: text,
  status: z.enum(["pending", "succeeded", "failed"]),
  captured: z.boolean(),
  refunded: z.boolean(),
  disputed: z.boolean(),
  payer: maybe,
  payee: maybe,
  instrument: maybe,
  purpose: maybe,
  invoice: maybe,
  transfer: maybe,
  sourceTransfer: maybe,
  failureCode: maybe,
  derived: z.boolean(),
  createdAt: time,
  ...marks,
  ...version,
});

const refund = z.object({
  kind: z.literal("refund"),
  scope: text,
  refundId: text,
  chargeId: maybe,
  paymentIntent: maybe,
  amount,
  currency: text,
  status: text,
  reason: maybe,
  failureReason: maybe,
  createdAt: time,
  ...version,
});

const dispute = z.object({
  kind: z.literal("dispute"),
  scope: text,
  disputeId: text,
  chargeId: maybe,
  paymentIntent: maybe,
  amount,
  currency: text,
  status: text,
  reason: maybe,
  refundable: z.boolean().nullable(),
  createdAt: time,
  ...version,
});

const key = z.object({
  kind: z.literal("key"),
  scope: text,
  objectId: text,
  idempotencyKey: text,
  eventId: text,
  at: time,
});

const readingSchema = z.object({
  facts: z.array(z.discriminatedUnion("kind", [paymentIntent, charge, refund, dispute, key])),
  refetch: z.array(z.object({ id: text, reason: text })),
});

/** JSON text of a reading: amounts as strings of digits, times in ISO 8601. */
export function writeReading(reading: Reading): string {
  return JSON.stringify(reading, (_name, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
}

/** Reads what {@link writeReading} wrote, already parsed. Throws `ZodError` for anything else. */
export function reviveReading(body: unknown): Reading {
  const parsed = readingSchema.parse(body);
  const facts: readonly Fact[] = parsed.facts;
  return { facts, refetch: parsed.refetch };
}
