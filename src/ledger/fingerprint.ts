import { createHash } from "node:crypto";

/** What makes an operation this one and no other. */
export interface Material {
  readonly intentId: string;
  /** Minor units. */
  readonly amount: bigint;
  readonly currency: string;
}

/**
 * The documented fingerprint of an intent: SHA-256, in hex, of its amount, currency and id as JSON
 * with sorted keys, spelled as Python's `json.dumps` spells it, so that writers in both languages
 * and tallyd's own reading agree.
 */
export function fingerprintOf({ intentId, amount, currency }: Material): string {
  const pairs = [
    `"amount": ${String(amount)}`,
    `"currency": ${asciiJson(currency.toLowerCase())}`,
    `"intent_id": ${asciiJson(intentId)}`,
  ];
  return createHash("sha256")
    .update(`{${pairs.join(", ")}}`)
    .digest("hex");
}

/** Python escapes what is not ASCII, JavaScript does not. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
