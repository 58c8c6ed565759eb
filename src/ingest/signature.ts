/**
 * Stripe's webhook signature, checked over the raw bytes at the time of receipt (Stripe's
 * documentation
 * section 3.5, case B18). Unlike the SDK's check it refuses a future time too, and it tells a valid
 * signature with a stale time from a wrong one, so that a wrong clock can be named.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** What was found about a signature. */
export type SignatureVerdict =
  | { readonly kind: "valid" }
  | { readonly kind: "missing" }
  | { readonly kind: "malformed"; readonly seen: string }
  | { readonly kind: "no_match" }
  /** The HMAC is right, the time is not: seconds between it and the receipt, past positive. */
  | { readonly kind: "stale" | "future"; readonly offsetSeconds: number };

/** Stripe's own default, applied in both directions. */
export const TOLERANCE_SECONDS = 300;

// A real header has at most a time and a handful of signatures (one a secret during a roll).
const HEADER_MAX = 4096;
const SIGNATURES_MAX = 16;
const TIME = /^\d{1,12}$/;
const V1 = /^[0-9a-f]{64}$/i;

/** Checks `header` against every secret and every `v1` in it; `v0` is a decoy and is ignored. */
export function checkSignature(input: {
  readonly rawBody: Buffer;
  readonly header: string | undefined;
  readonly secrets: readonly string[];
  readonly receivedAt: Date;
}): SignatureVerdict {
  if (input.header === undefined || input.header.trim() === "") return { kind: "missing" };
  const parsed = parseHeader(input.header);
  if ("seen" in parsed) return { kind: "malformed", seen: parsed.seen };
  const matches = input.secrets.some((secret) => {
    const expected = createHmac("sha256", secret)
      .update(`${parsed.time}.`, "utf8")
      .update(input.rawBody)
      .digest();
    return parsed.signatures.some((signature) => timingSafeEqual(signature, expected));
  });
  if (!matches) return { kind: "no_match" };
  const offsetSeconds = Math.floor(input.receivedAt.getTime() / 1000) - Number(parsed.time);
  if (offsetSeconds > TOLERANCE_SECONDS) return { kind: "stale", offsetSeconds };
  if (offsetSeconds < -TOLERANCE_SECONDS) return { kind: "future", offsetSeconds };
  return { kind: "valid" };
}

interface ParsedHeader {
  readonly time: string;
  readonly signatures: readonly Buffer[];
}

function parseHeader(header: string): ParsedHeader | { readonly seen: string } {
  if (header.length > HEADER_MAX) return { seen: `${String(header.length)} characters` };
  const times: string[] = [];
  const signatures: Buffer[] = [];
  for (const item of header.split(",")) {
    const at = item.indexOf("=");
    const name = item.slice(0, Math.max(at, 0)).trim();
    const value = item.slice(at + 1).trim();
    if (name === "t") times.push(value);
    if (name === "v1" && V1.test(value)) signatures.push(Buffer.from(value, "hex"));
  }
  const time = times[0];
  if (time === undefined) return { seen: "no time (t=)" };
  if (times.length > 1) return { seen: "more than one time (t=)" };
  if (!TIME.test(time)) return { seen: "a time (t=) that is no number of seconds" };
  if (signatures.length === 0) return { seen: "no v1 signature of 64 hex digits" };
  if (signatures.length > SIGNATURES_MAX) {
    return { seen: `${String(signatures.length)} v1 signatures` };
  }
  return { time, signatures };
}
