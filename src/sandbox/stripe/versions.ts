import { invalidParam } from "./errors.ts";

/** The version that stripe 23.1.0 pins. */
export const PINNED_VERSION = "2026-10-28.endive";

/** Since this version a payment intent has no `charges` and a charge no `refunds` (changelog). */
export const WITHOUT_EMBEDDED_LISTS = "2022-11-15";
/** Since this version capture is asynchronous unless asked otherwise (asynchronous capture). */
export const ASYNC_CAPTURE_BY_DEFAULT = "2024-04-10";
/** Since this version (basil) intents and charges do not name their invoice. */
export const WITHOUT_INVOICE = "2025-03-31";
/** Since this version (endive) `payment_method_types` cannot be written (changelog). */
export const METHOD_TYPES_READ_ONLY = "2026-09-30";

const SHAPE = /^\d{4}-\d{2}-\d{2}(\.[a-z]+)?$/;
const DATE_LENGTH = "2026-10-28".length;

/** Whether `version` is `since` or newer; only the date counts, the name is decoration. */
export function atLeast(version: string, since: string): boolean {
  return version.slice(0, DATE_LENGTH) >= since.slice(0, DATE_LENGTH);
}

/** The version of a request: its header, else the account's. Throws a 400 for a malformed one. */
export function requestVersion(header: string | undefined, accountVersion: string): string {
  if (header === undefined) return accountVersion;
  if (!SHAPE.test(header)) throw invalidParam(`Invalid Stripe API version: ${header}`);
  return header;
}
