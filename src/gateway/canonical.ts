import { createHash } from "node:crypto";

/** Nesting that is read; deeper JSON is refused, since reading it is recursive. */
export const JSON_DEPTH_MAX = 64;

/**
 * JSON with sorted keys, spelled as Python's `json.dumps(value, sort_keys=True)` spells it, so that
 * agents and gateways in both languages name one request alike (whole numbers written as `1.0` and
 * beyond 2^53 excepted: JavaScript cannot tell them apart). Members without a value are left out,
 * as `JSON.stringify` leaves them out. Throws a `RangeError` on functions and on too deep nesting.
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > JSON_DEPTH_MAX) {
    throw new RangeError(`JSON is nested deeper than ${String(JSON_DEPTH_MAX)} levels: flatten it`);
  }
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return asciiText(value);
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return numberText(value);
  if (Array.isArray(value)) {
    return `[${value.map((one: unknown) => canonicalJson(one, depth + 1)).join(", ")}]`;
  }
  if (typeof value !== "object") throw new RangeError(`JSON cannot hold a ${typeof value}`);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return canonicalJson((value.toJSON as () => unknown)(), depth + 1);
  }
  const pairs = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .sort(([a], [b]) => byCodePoint(a, b))
    .map(([key, one]) => `${asciiText(key)}: ${canonicalJson(one, depth + 1)}`);
  return `{${pairs.join(", ")}}`;
}

/** SHA-256 in hex. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** What a paid request is, as far as its identifier goes. */
export interface RequestContent {
  readonly endpoint: string;
  readonly method: string;
  /** Anything JSON holds; `null` for none. */
  readonly body: unknown;
}

// 128 bits, which is what the documented example keeps; identifiers have 16 to 128 characters.
const ID_CHARACTERS = 32;

/**
 * The payment identifier of a request by its content: an agent that forgot everything makes the
 * same one again. Two purchases that are meant to be two need a body that differs (put a number in
 * it).
 */
export function deterministicPaymentId(content: RequestContent): string {
  const { endpoint, body } = content;
  const method = content.method.toUpperCase();
  return sha256(canonicalJson({ endpoint, method, body: body ?? null })).slice(0, ID_CHARACTERS);
}

function byCodePoint(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, "utf8"), Buffer.from(b, "utf8"));
}

function asciiText(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Below this Python writes an exponent; JavaScript starts three digits later.
const EXPONENT_BELOW = 1e-4;

function numberText(value: number): string {
  if (value === 0) return "0";
  if (Number.isInteger(value)) return BigInt(value).toString();
  const text = Math.abs(value) < EXPONENT_BELOW ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}
