/**
 * The allow-list: exactly these fields of Stripe's objects are looked at, in every spelling that an
 * API version since 2020-08-27 gives them (Stripe's documentation, case B22). zod drops all
 * other fields, so e-mail addresses, names, card data and client secrets end here.
 */
import { z } from "zod";

/** Longest id that the mirror stores; Stripe's own are far shorter. */
const ID_MAX = 255;
/** Longest open enum value; the mirror's columns have the same limit. */
const WORD_MAX = 64;
const REASON_MAX = 128;
/** numeric(78,0) holds 78 digits. */
const AMOUNT_DIGITS_MAX = 78;
// The latest second of the year 9999: beyond it a date cannot be written in ISO 8601.
const SECONDS_MAX = 253_402_300_799;

const DIGITS = new RegExp(`^\\d{1,${String(AMOUNT_DIGITS_MAX)}}$`);

/** An id of Stripe's: visible ASCII without spaces. */
export const idSchema = z
  .string()
  .max(ID_MAX)
  .regex(/^[\x21-\x7e]+$/, "an id has visible characters only");

/** An id, or the expanded object that carries it. */
const expandable = z
  .union([idSchema, z.object({ id: idSchema }).transform((object) => object.id)])
  .nullish()
  .transform((id) => id ?? null);

/** Whole, not negative minor units; a rounded number is refused, since its digits are lost. */
const amount = z
  .union([
    z
      .number()
      .refine((value) => Number.isSafeInteger(value), "a whole number below 2^53 is needed")
      .refine((value) => value >= 0, "an amount is not negative")
      .transform((value) => BigInt(value)),
    z
      .string()
      .regex(DIGITS, "an amount has digits only")
      .transform((value) => BigInt(value)),
  ])
  .describe("amount");

/** Three letters, or the few more of a token; lower case as Stripe writes it. */
const currency = z
  .string()
  .regex(/^[A-Za-z]{3,5}$/, "a currency has three to five letters")
  .transform((code) => code.toLowerCase());

const seconds = z
  .int()
  .min(0)
  .max(SECONDS_MAX)
  .transform((value) => new Date(value * 1000));

const word = z
  .string()
  .max(WORD_MAX)
  .regex(/^[\x21-\x7e]+$/, "a word has visible characters only");
const reason = z
  .string()
  .max(REASON_MAX)
  .regex(/^[\x20-\x7e]*$/)
  .nullish()
  // A reason that cannot be stored is no ground to refuse the money it explains.
  .catch(null)
  .transform((value) => (value === undefined || value === "" ? null : value));

/** Free text; it is hashed before it leaves the reader. */
const text = z.string().nullish().catch(null);
const metadata = z.record(z.string(), z.unknown()).nullish().catch(null);
const flag = z.boolean();

const transferData = z.object({ destination: expandable }).nullish();

/** A page of nested objects; each is read on its own, so that one bad entry spoils no other. */
const nestedList = z
  .object({ data: z.array(z.unknown()), has_more: z.boolean().nullish() })
  .nullish();

/** `payment_intent` objects. */
export const paymentIntentSchema = z.object({
  object: z.literal("payment_intent"),
  id: idSchema,
  amount,
  amount_received: amount.nullish(),
  amount_capturable: amount.nullish(),
  currency,
  status: word,
  customer: expandable,
  customer_account: expandable,
  description: text,
  invoice: expandable,
  latest_charge: z.unknown().optional(),
  charges: nestedList,
  last_payment_error: z.object({ code: reason, type: reason }).nullish().catch(null),
  cancellation_reason: reason,
  on_behalf_of: expandable,
  transfer_data: transferData,
  payment_method_types: z.array(z.string()).nullish().catch(null),
  metadata,
  created: seconds,
});

const fingerprinted = z.object({ fingerprint: text }).nullish().catch(null);

/** `charge` objects, `ch_` and `py_` alike. */
export const chargeSchema = z.object({
  object: z.literal("charge"),
  id: idSchema,
  payment_intent: expandable,
  amount,
  // Absent before 2020-08-27.
  amount_captured: amount.nullish(),
  amount_refunded: amount.nullish(),
  currency,
  status: z.enum(["pending", "succeeded", "failed"]),
  paid: flag.nullish(),
  captured: flag.nullish(),
  refunded: flag.nullish(),
  disputed: flag.nullish(),
  customer: expandable,
  description: text,
  destination: expandable,
  on_behalf_of: expandable,
  transfer_data: transferData,
  transfer: expandable,
  source_transfer: expandable,
  invoice: expandable,
  failure_code: reason,
  payment_method_details: z.record(z.string(), z.unknown()).nullish().catch(null),
  source: fingerprinted,
  refunds: nestedList,
  metadata,
  created: seconds,
});

/** The part of `payment_method_details` that belongs to its type. */
export const methodDetailsSchema = fingerprinted;

/** `refund` objects. */
export const refundSchema = z.object({
  object: z.literal("refund"),
  id: idSchema,
  charge: expandable,
  payment_intent: expandable,
  amount,
  currency,
  // Nullable in Stripe's own types: then it says nothing, and counts as nothing.
  status: word.nullish(),
  reason,
  failure_reason: reason,
  created: seconds,
});

/** `dispute` objects, inquiries included. */
export const disputeSchema = z.object({
  object: z.literal("dispute"),
  id: idSchema,
  charge: expandable,
  payment_intent: expandable,
  amount,
  currency,
  status: word,
  reason,
  is_charge_refundable: flag.nullish(),
  created: seconds,
});

/** The least that an object must have to be fetched by id. */
export const stubSchema = z.object({ object: z.string().max(WORD_MAX), id: idSchema });

/** What was wrong with a shape, without the values that it held. */
export function describeIssues(error: z.ZodError): string {
  const issues = error.issues.slice(0, 3).map((issue) => {
    const place = issue.path.map(String).join(".");
    return place === "" ? issue.message : `${place}: ${issue.message}`;
  });
  return issues.join("; ");
}

/** Whether `value` is absent in any spelling. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
