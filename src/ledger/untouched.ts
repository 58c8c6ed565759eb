import { LedgerError } from "./errors.ts";
import { fingerprintOf } from "./fingerprint.ts";
import type { LedgerIntent } from "./intent.ts";

/**
 * Throws `conflict` when a material field of the row was changed after it was minted: it no longer
 * fits its fingerprint, or what was paid for it.
 */
export function requireUntouched(intent: LedgerIntent): void {
  const fault = fingerprintFault(intent) ?? paidFault(intent);
  if (fault === null) return;
  throw new LedgerError("conflict", `${intent.intentId} ${fault}; nothing was sent`, {
    intentId: intent.intentId,
  });
}

function fingerprintFault(intent: LedgerIntent): string | null {
  const { fingerprint } = intent;
  if (fingerprint === null || fingerprint === fingerprintOf(intent)) return null;
  return "was changed: amount, currency and id no longer give its stored fingerprint";
}

/** Tables without fingerprints still hold what was paid. */
function paidFault(intent: LedgerIntent): string | null {
  if (intent.state !== "recorded" || intent.response === null) return null;
  const name = intent.operation === "capture" ? "amount_received" : "amount";
  const { [name]: amount, currency } = intent.response;
  const isAmount = typeof amount === "number" || typeof amount === "string";
  if (!isAmount || typeof currency !== "string") return null;
  const paid = `${amount} ${currency.toLowerCase()}`;
  const said = `${intent.amount} ${intent.currency}`;
  return paid === said ? null : `says ${said}, and ${paid} was paid under its key`;
}
