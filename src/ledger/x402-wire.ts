/** The wire format of x402 version 2: headers that hold JSON in base64. */
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { objectOf, textOf } from "./intent.ts";

/** One way to pay that the server takes. */
export interface Requirement {
  /** As it came: it goes back unchanged, whatever is read out of it. */
  readonly raw: JsonObject;
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
  /** How long an authorization for it may live, in whole seconds. */
  readonly lifeS: number;
  /** EIP-712 domain of the token. */
  readonly name: string;
  readonly version: string;
}

/** What the server said in its PAYMENT-REQUIRED header. */
export interface Demand {
  readonly resource: JsonObject;
  readonly extensions: JsonObject;
  readonly accepts: readonly JsonObject[];
}

/** What the server said of the settlement. */
export interface Settlement {
  readonly success: boolean;
  /** A transaction's hash; `null`: none that could be one. */
  readonly transaction: string | null;
  readonly said: JsonObject;
}

const VERSION = 2;
const IDENTIFIER = "payment-identifier";
const HASH = /^0x[0-9a-f]{64}$/;
// Facilitators ask for minutes. What is signed for longer could be settled long after everybody
// has forgotten it, and the row would be in doubt for just as long.
const LIFE_S_MAX = 3_600;

/** Reads a header; `null`: there is none, or it cannot be read. */
function decode(header: string | null): JsonObject | null {
  if (header === null) return null;
  try {
    return objectOf(JSON.parse(Buffer.from(header, "base64").toString("utf8")));
  } catch {
    return null;
  }
}

/** The demand of a 402; `null`: it makes none that this version understands. */
export function demandOf(header: string | null): Demand | null {
  const demand = decode(header);
  const accepts = demand?.["accepts"];
  if (demand?.["x402Version"] !== VERSION || !Array.isArray(accepts)) return null;
  return {
    resource: objectOf(demand["resource"]),
    extensions: objectOf(demand["extensions"]),
    accepts: accepts.map(objectOf),
  };
}

/** What a PAYMENT-RESPONSE header says; `null`: nothing. */
export function settlementOf(header: string | null): Settlement | null {
  const said = decode(header);
  if (said === null) return null;
  const hash = textOf(said["transaction"])?.toLowerCase() ?? "";
  const transaction = HASH.test(hash) ? hash : null;
  return { success: said["success"] === true, transaction, said };
}

/**
 * The one way to pay that is what the row says: network, token, payee and amount. Throws `conflict`
 * when there is none: a server that raised its price must not be paid by an old decision.
 */
export function requirementFor(intent: LedgerIntent, demand: Demand): Requirement {
  const wanted = termsOf(intent);
  const offers = demand.accepts.flatMap((raw) => {
    const offer = readRequirement(raw);
    return offer === null ? [] : [offer];
  });
  const found = offers.find(
    (offer) =>
      offer.network === wanted.network &&
      offer.amount === String(intent.amount) &&
      offer.asset.toLowerCase() === wanted.asset &&
      offer.payTo.toLowerCase() === wanted.payee,
  );
  if (found !== undefined) return found;
  const seen = offers.map((o) => `${o.amount} of ${o.asset} to ${o.payTo} on ${o.network}`);
  throw new LedgerError(
    "conflict",
    `${intent.intentId} is for ${intent.amount} of ${wanted.asset} to ${wanted.payee} on ` +
      `${wanted.network}, and the server asks for ${seen.join(" or ") || "nothing known"}: ` +
      "nothing was signed",
    { intentId: intent.intentId },
  );
}

/** What the row fixes of a payment on chain, in lower case. Throws `invalid`. */
export function termsOf(
  intent: LedgerIntent,
): Readonly<Record<"network" | "asset" | "payee", string>> {
  const read = (name: string): string => {
    const value = textOf(intent.columns[name]);
    if (value !== null) return value.toLowerCase();
    throw new LedgerError("invalid", `${intent.intentId} has no ${name}: mint it with one`, {
      intentId: intent.intentId,
    });
  };
  return { network: read("network"), asset: read("asset"), payee: read("payee") };
}

function readRequirement(raw: JsonObject): Requirement | null {
  const { scheme, network, asset, payTo, amount, maxTimeoutSeconds } = raw;
  const { name, version, assetTransferMethod = "eip3009" } = objectOf(raw["extra"]);
  const texts = [network, asset, payTo, amount, name, version];
  if (scheme !== "exact" || assetTransferMethod !== "eip3009") return null;
  if (!texts.every((text) => typeof text === "string")) return null;
  if (typeof maxTimeoutSeconds !== "number" || !(maxTimeoutSeconds >= 1)) return null;
  const [n, a, p, m, domain, v] = texts;
  return {
    raw,
    network: String(n),
    asset: String(a),
    payTo: String(p),
    amount: String(m),
    lifeS: Math.min(Math.floor(maxTimeoutSeconds), LIFE_S_MAX),
    name: String(domain),
    version: String(v),
  };
}

/** The payment as it is sent; the identifier goes along where the server takes one. */
export function paymentOf(
  demand: Demand,
  requirement: Requirement,
  payload: JsonObject,
  paymentId: string,
): JsonObject {
  const offered = objectOf(demand.extensions[IDENTIFIER]);
  const takesId = demand.extensions[IDENTIFIER] !== undefined;
  const info = { ...objectOf(offered["info"]), id: paymentId };
  const identifier = takesId ? { [IDENTIFIER]: { ...offered, info } } : {};
  return {
    x402Version: VERSION,
    resource: demand.resource,
    accepted: requirement.raw,
    payload,
    extensions: { ...demand.extensions, ...identifier },
  };
}

/** The header that carries a payment. */
export function paymentHeader(payment: JsonObject): Readonly<Record<string, string>> {
  return { "payment-signature": Buffer.from(JSON.stringify(payment)).toString("base64") };
}
