import type { ResponseKind } from "../../core/intent.ts";

// Error types that do not say what became of the money: the request may have run, or an earlier
// one with the same key did (Stripe's documentation). They explain no failure.
const AMBIGUOUS = new Set([
  "api_error",
  "api_connection_error",
  "idempotency_error",
  "rate_limit_error",
  "connection_error",
  "timeout_error",
]);

// Classes of the official libraries, as they serialise themselves.
const EXPLAINED_CLASS = /^Stripe(?:Card|InvalidRequest|Authentication|Permission)Error$/;

const OBJECT_ID = /^(?:pi|ch|py|re|in|seti)_[A-Za-z0-9]/;

// A response that was encoded twice is a JSON text in a JSON text; deeper nesting is nobody's.
const NESTING_MAX = 2;

/**
 * What the stored response tells: `error` when it is a provider's error object that explains the
 * failure, `object` when it is a provider's object, `none` when there is nothing, else `other`
 * (case B04: a failure that nothing explains may be a success at the provider).
 */
export function responseKind(text: string | null): ResponseKind {
  let value: unknown = text;
  for (let depth = 0; typeof value === "string" && depth < NESTING_MAX; depth += 1) {
    try {
      value = JSON.parse(value) as unknown;
    } catch {
      return value === "" ? "none" : "other";
    }
  }
  if (value === null) return "none";
  if (typeof value !== "object") return "other";
  const response = value as Readonly<Record<string, unknown>>;
  const error = response["error"];
  if (explains(response)) return "error";
  if (typeof error === "object" && error !== null) {
    return explains(error as Readonly<Record<string, unknown>>) ? "error" : "other";
  }
  return isObject(response) ? "object" : "other";
}

function explains(error: Readonly<Record<string, unknown>>): boolean {
  const { type, rawType, decline_code: declineCode } = error;
  if (typeof declineCode === "string" && declineCode !== "") return true;
  return [type, rawType].some(
    (name) =>
      typeof name === "string" &&
      ((name.endsWith("_error") && !AMBIGUOUS.has(name)) || EXPLAINED_CLASS.test(name)),
  );
}

function isObject(response: Readonly<Record<string, unknown>>): boolean {
  return typeof response["id"] === "string" && OBJECT_ID.test(response["id"]);
}

/**
 * SQL that cuts a jsonb response down to what {@link responseKind} looks at: the rest of it may be
 * large and may be personal, and it has no use here.
 */
export function reducedResponseSql(jsonb: string): string {
  const keys = ["id", "type", "rawType", "decline_code"];
  const pick = (from: string): string =>
    keys.map((key) => `'${key}', ${from} -> '${key}'`).join(", ");
  const error = `(${jsonb} -> 'error')`;
  return (
    `(case jsonb_typeof(${jsonb}) when 'object' then jsonb_build_object(${pick(jsonb)}, ` +
    `'error', case jsonb_typeof${error} when 'object' then jsonb_build_object(${pick(error)}) ` +
    `end) else ${jsonb} end)::text`
  );
}
