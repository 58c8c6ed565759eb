import type { IncomingHttpHeaders } from "node:http";
import { forbidden, unauthenticated } from "./errors.ts";

/** What a key may do and where. */
export interface Caller {
  readonly key: string;
  readonly livemode: boolean;
  /** Restricted keys (`rk_`) only read here. */
  readonly readOnly: boolean;
  /** The account named by Stripe-Account (or Stripe-Context), else null for the platform. */
  readonly account: string | null;
}

const KEY_SHAPE = /^(sk|rk)_(test|live)_\w{8,}$/;

function presentedKey(authorization: string | undefined): string {
  if (authorization === undefined || authorization === "") {
    throw unauthenticated(
      "You did not provide an API key. Send it in the Authorization header, as Bearer or Basic.",
    );
  }
  const [scheme = "", value = ""] = authorization.split(" ");
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme.toLowerCase() === "basic") {
    return Buffer.from(value, "base64").toString("utf8").split(":")[0] ?? "";
  }
  throw unauthenticated("The Authorization header must use Bearer or Basic.");
}

function one(header: string | readonly string[] | undefined): string | null {
  const value = typeof header === "string" ? header : (header?.[0] ?? "");
  return value === "" ? null : value;
}

/** Reads the caller from the headers. Throws 401 for a missing, malformed or revoked key. */
export function authenticate(headers: IncomingHttpHeaders, revoked: ReadonlySet<string>): Caller {
  const key = presentedKey(headers.authorization);
  const shape = KEY_SHAPE.exec(key);
  if (shape === null || revoked.has(key)) {
    throw unauthenticated(`Invalid API Key provided: ${key.slice(0, 8)}****${key.slice(-4)}`);
  }
  return {
    key,
    livemode: shape[2] === "live",
    readOnly: shape[1] === "rk",
    account: one(headers["stripe-account"]) ?? one(headers["stripe-context"]),
  };
}

/** Throws 403 when a read-only key tries to write: its holder must not be able to move money. */
export function requirePermission(caller: Caller, method: string): void {
  if (!caller.readOnly || method === "GET" || method === "HEAD") return;
  throw forbidden(
    `The provided key '${caller.key.slice(0, 8)}****' does not have the permissions to write ` +
      "on this endpoint: it is a restricted key with read access only.",
    "more_permissions_required",
  );
}

/** Throws 403 when the account is not one that the key can act for. */
export function requireAccount(
  caller: Caller,
  platform: string,
  known: ReadonlySet<string> | null,
): string {
  if (caller.account === null || caller.account === platform) return platform;
  if (known !== null && !known.has(caller.account)) {
    throw forbidden(
      `The provided key '${caller.key.slice(0, 8)}****' does not have access to account ` +
        `'${caller.account}' (or that account does not exist).`,
      "account_invalid",
    );
  }
  return caller.account;
}
