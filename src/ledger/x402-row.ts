/** What a row keeps of a payment over x402: the signed payment, before anybody has seen it. */
import type { JsonObject } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { objectOf, textOf } from "./intent.ts";
import type { NonceMark } from "./x402-chain.ts";
import { termsOf } from "./x402-wire.ts";

/** A stored payment. */
export interface StoredPayment {
  /** As it is sent, every time. */
  readonly payment: JsonObject;
  readonly mark: NonceMark;
}

/** The payment that is stored in the row; `null`: nothing was signed, or what was is dead. */
export function storedPayment(intent: LedgerIntent): StoredPayment | null {
  const kept = keptOf(intent);
  const payer = textOf(kept["payer"]);
  const nonce = textOf(kept["nonce"]);
  if (payer === null || nonce === null) return null;
  const { network, asset } = termsOf(intent);
  const validBefore = Number(kept["validBefore"]);
  const fromBlock = Number(kept["fromBlock"]);
  return {
    payment: objectOf(kept["payment"]),
    mark: { network, asset, payer, nonce, validBefore, fromBlock },
  };
}

/** Nonces of authorizations that were proven dead. */
export function deadNonces(intent: LedgerIntent): readonly string[] {
  const dead = keptOf(intent)["dead"];
  return Array.isArray(dead) ? dead.map(String) : [];
}

/** The identifier of the payment: the key of the intent, which fits what the extension takes. */
export function paymentIdOf(intent: LedgerIntent): string {
  return textOf(intent.columns["payment_id"]) ?? intent.idempotencyKey;
}

/** What is merged into the row's metadata when a payment was signed. */
export function signedMetadata(intent: LedgerIntent, stored: StoredPayment): JsonObject {
  const { payer, nonce, validBefore, fromBlock } = stored.mark;
  const dead = deadNonces(intent);
  return { x402: { payment: stored.payment, payer, nonce, validBefore, fromBlock, dead } };
}

/** The same when the signed payment was proven dead. */
export function deadMetadata(intent: LedgerIntent, nonce: string): JsonObject {
  return { x402: { dead: [...deadNonces(intent), nonce] } };
}

function keptOf(intent: LedgerIntent): JsonObject {
  return objectOf(objectOf(intent.columns["metadata"])["x402"]);
}
