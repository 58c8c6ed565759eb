/** Rules of idempotency keys (Stripe, "Idempotent requests"). */
import { randomUUID } from "node:crypto";

import { LedgerError } from "./errors.ts";
import type { Operation } from "./intent.ts";

/** Stripe's limit on the length of a key. */
export const KEY_LENGTH_MAX = 255;

const PREFIX: Readonly<Record<Operation, string>> = {
  charge: "pay",
  capture: "capture",
  refund: "refund",
};

/** The kinds of call. */
export const OPERATIONS: readonly Operation[] = ["charge", "capture", "refund"];

// Card numbers of the common brands, written together or in groups, and standing for themselves:
// a time in microseconds or the digits of a UUID must not be taken for one.
const SIXTEEN = "[2456]\\d{3}([ -]?)\\d{4}\\1\\d{4}\\1\\d{4}";
const FIFTEEN = "3[47]\\d{2}([ -]?)\\d{6}\\2\\d{5}";
const CARD = new RegExp(`(?<![\\da-z])(?:${SIXTEEN}|${FIFTEEN})(?![\\da-z])`, "gi");

/**
 * A new key: the kind of call, so that a charge and its refund can never share one, and 122 random
 * bits. The intent's id is left out, since teams put all sorts of things into theirs.
 */
export function newKey(operation: Operation): string {
  return `${PREFIX[operation]}_${randomUUID()}`;
}

/** The kind of call that a key of {@link newKey} was minted for; `null`: it does not say. */
export function operationOfKey(key: string): Operation | null {
  for (const operation of OPERATIONS) {
    if (key.startsWith(`${PREFIX[operation]}_`)) return operation;
  }
  return null;
}

/**
 * A key of the caller's own, as it is. Throws `invalid` when it is longer than Stripe takes, holds
 * anything but visible ASCII, or looks like personal data: keys end up in logs, at both ends.
 */
export function checkedKey(key: string, operation: Operation): string {
  const fault = faultOf(key, operation);
  if (fault === null) return key;
  throw new LedgerError("invalid", `the idempotency key ${fault}; nothing was stored`);
}

function faultOf(key: string, operation: Operation): string | null {
  if (key.length === 0 || key.length > KEY_LENGTH_MAX) {
    return `has ${key.length} characters: 1 to ${KEY_LENGTH_MAX} are allowed`;
  }
  if (!/^[\x21-\x7e]+$/.test(key)) return "holds something else than visible ASCII characters";
  if (/[^\s@]+(?:@|%40)[^\s@]+\.[^\s@]+/i.test(key))
    return "holds an e-mail address: use an id instead";
  if ((key.match(CARD) ?? []).some(isCardNumber)) return "holds a card number: use an id instead";
  const said = operationOfKey(key);
  if (said !== null && said !== operation) {
    return `is spelled as one of a ${said} and stands for a ${operation}: each needs its own`;
  }
  return null;
}

/** Luhn's check, which every card number passes and one random number in ten does. */
function isCardNumber(text: string): boolean {
  const digits = Array.from(text.replaceAll(/\D/g, ""), Number).reverse();
  const sum = digits.reduce((total, digit, index) => {
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}
