/** The payment of an x402 request as it arrives: not verified, so nothing in it is believed. */
import { canonicalJson, sha256 } from "./canonical.ts";
import { headerOf, readContent } from "./request.ts";
import type { GatewayRequest, Read, RequestLimits } from "./request.ts";
import type { Arrival } from "./store.ts";

// specs/extensions/payment_identifier.md of x402.
const PAYMENT_ID = /^[A-Za-z0-9_-]{16,128}$/;
const EXTENSION = "payment-identifier";

type Fields = Readonly<Record<string, unknown>>;

/** The header that carries a payment (x402 v2, then v1); `null`: the request does not pay. */
export function paymentHeader(request: GatewayRequest): string | null {
  return headerOf(request, "payment-signature") ?? headerOf(request, "x-payment");
}

/**
 * What a paid request is known by. The identifier counts for its payer, since two agents may well
 * make the same one; it is bound to the exact payload, because it is looked up before anything is
 * verified (payment_identifier.md, "Recovering a Lost Response").
 */
export function readPayment(
  request: GatewayRequest,
  header: string,
  options: RequestLimits & { readonly scope: string; readonly requireId: boolean },
): Read<Arrival> {
  if (header.length > options.headerBytesMax) return { fault: "header_too_large" };
  const payload = decode(header);
  if (payload === null) return { fault: "payment_malformed" };
  const id = identifierOf(payload);
  if (id === undefined) {
    if (options.requireId) return { fault: "payment_id_missing" };
  } else if (typeof id !== "string" || !PAYMENT_ID.test(id)) {
    return { fault: "payment_id_invalid" };
  }
  const content = readContent(request, options);
  if ("fault" in content) return content;
  const canonical = canonicalOf(payload);
  const signed = signedOf(payload);
  if (canonical === null || signed === null) return { fault: "payment_malformed" };
  return {
    value: {
      scope: options.scope,
      principal: signed.payer,
      // No identifier has a colon: a payment without one is known by what was signed.
      id: id ?? `authorization:${signed.hash}`,
      fingerprint: sha256(canonicalJson([content.value, canonical])),
      authHash: signed.hash,
    },
  };
}

function decode(header: string): Fields | null {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    return fieldsOf(parsed);
  } catch {
    return null;
  }
}

function canonicalOf(payload: Fields): string | null {
  try {
    return canonicalJson(payload);
  } catch {
    return null;
  }
}

/** `undefined`: there is none. */
function identifierOf(payload: Fields): unknown {
  const extension = fieldsOf(fieldsOf(payload["extensions"])?.[EXTENSION]);
  return fieldsOf(extension?.["info"])?.["id"];
}

interface SignedBy {
  readonly payer: string;
  readonly hash: string;
}

// Permit2 and EIP-3009: payer and nonce can be used once by contract, whatever else is varied.
const AUTHORIZATIONS = ["permit2Authorization", "authorization"] as const;

/** What was signed, by its payer and nonce where it has them; `null`: nothing was. */
function signedOf(payload: Fields): SignedBy | null {
  const inner = fieldsOf(payload["payload"]);
  // With two nonces the one that is known here need not be the one that pays.
  if (inner === null || AUTHORIZATIONS.every((name) => name in inner)) return null;
  for (const name of AUTHORIZATIONS) {
    const authorization = fieldsOf(inner[name]);
    const from = authorization?.["from"];
    const nonce = authorization?.["nonce"];
    if (typeof from !== "string" || typeof nonce !== "string") continue;
    const payer = from.toLowerCase();
    return { payer, hash: sha256(canonicalJson([name, payer, nonce.toLowerCase()])) };
  }
  return { payer: "", hash: sha256(canonicalJson(inner)) };
}

function fieldsOf(value: unknown): Fields | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return value as Fields;
}
