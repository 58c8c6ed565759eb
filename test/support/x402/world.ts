/** A buyer with the official client of x402, a shop with the official server, a line between. */
import { decodePaymentResponseHeader, x402Client, x402HTTPClient } from "@x402/fetch";
import { wrapFetchWithPayment } from "@x402/fetch";
import type { Network, PaymentPayload } from "@x402/fetch";
import type { SettleResponse } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { isEIP3009Payload } from "@x402/evm";
import type { ExactEvmPayloadV2 } from "@x402/evm";
import { appendPaymentIdentifierToExtensions } from "@x402/extensions/payment-identifier";

import type { RequestHandler } from "express";

import type { Authorization } from "../../../src/sandbox/chain/local-types.ts";
import type { ChainWorld } from "../chain-world.ts";
import { openLine } from "./line.ts";
import type { Line } from "./line.ts";
import { GOODS, openShop } from "./shop.ts";
import type { Shop } from "./shop.ts";

/** What the client signed. */
export interface Signed extends Authorization {
  /** The headers that carry it. */
  readonly headers: Readonly<Record<string, string>>;
  /** In the payload only: it never reaches the chain. */
  readonly paymentId: string | null;
}

/** What the client was told. */
export interface Seen {
  /** `null`: the connection broke. */
  readonly status: number | null;
  /** The whole `PAYMENT-RESPONSE` header, as an agent would keep it; `null`: there was none. */
  readonly settled: SettleResponse | null;
  readonly success: boolean | null;
  /** The hash in it, whatever it is worth; "" where the server knew none. */
  readonly transaction: string | null;
  /** Why it was refused: of the settlement, or of the check before it. */
  readonly error: string | null;
}

/** The world. */
export interface X402World {
  readonly evm: ChainWorld;
  readonly shop: Shop;
  readonly line: Line;
  /** Buys as the official client does: asks, signs what is wanted, asks again. */
  readonly buy: (paymentId?: string) => Promise<Seen>;
  /** Signs a payment and keeps it back. */
  readonly sign: (paymentId?: string) => Promise<Signed>;
  /** Sends what was signed before. */
  readonly send: (signed: Signed) => Promise<Seen>;
  /** All that the client ever signed, in order. */
  readonly signed: readonly Signed[];
  readonly close: () => Promise<void>;
}

/** Opens the world on a chain; `front` stands in front of the official middleware. */
export async function openX402World(evm: ChainWorld, front?: RequestHandler): Promise<X402World> {
  const shop = await openShop(evm, front);
  const line = await openLine(shop.url);
  const signed: Signed[] = [];
  let paymentId: string | undefined;
  const network: Network = `eip155:${String(evm.anvil.chainId)}`;
  const client = new x402Client()
    .register(network, new ExactEvmScheme(evm.payer.account))
    // The token is none of the well-known ones, which alone are paid by default.
    .setSpendControls({ allowedAssets: [{ network, asset: evm.token.address }] });
  const messages = new x402HTTPClient(client);
  client
    .onBeforePaymentCreation(async ({ paymentRequired }) => {
      const { extensions } = paymentRequired;
      if (paymentId === undefined || extensions === undefined) return;
      appendPaymentIdentifierToExtensions(extensions, paymentId);
    })
    .onAfterPaymentCreation(async ({ paymentPayload }) => {
      signed.push(signedOf(paymentPayload, messages, paymentId ?? null));
    });
  const pay = wrapFetchWithPayment(fetch, client);
  const url = `${line.url}${GOODS}`;
  return {
    evm,
    shop,
    line,
    signed,
    buy: async (id) => {
      paymentId = id;
      return seenOf(() => pay(url));
    },
    sign: async (id) => {
      paymentId = id;
      const asked = await fetch(url);
      const required = messages.getPaymentRequiredResponse((name) => asked.headers.get(name));
      await client.createPaymentPayload(required);
      const last = signed.at(-1);
      if (last === undefined) throw new Error("the client signed nothing");
      return last;
    },
    send: (one) => seenOf(() => fetch(url, { headers: one.headers })),
    close: async () => {
      await line.close();
      await shop.close();
    },
  };
}

function signedOf(
  payment: PaymentPayload,
  messages: x402HTTPClient,
  paymentId: string | null,
): Signed {
  const payload = payment.payload as unknown as ExactEvmPayloadV2;
  if (!isEIP3009Payload(payload)) throw new Error("the client signed no authorization");
  const { authorization, signature } = payload;
  if (signature === undefined) throw new Error("the authorization is not signed");
  return {
    from: lower(authorization.from),
    to: lower(authorization.to),
    value: BigInt(authorization.value),
    validBefore: BigInt(authorization.validBefore),
    nonce: lower(authorization.nonce),
    signature,
    headers: messages.encodePaymentSignatureHeader(payment),
    paymentId,
  };
}

async function seenOf(ask: () => Promise<Response>): Promise<Seen> {
  let response: Response;
  try {
    response = await ask();
  } catch {
    return { status: null, settled: null, success: null, transaction: null, error: null };
  }
  const header = response.headers.get("payment-response");
  const settled = header === null ? null : decodePaymentResponseHeader(header);
  const required = response.headers.get("payment-required");
  return {
    status: response.status,
    settled,
    success: settled?.success ?? null,
    transaction: settled?.transaction ?? null,
    error: settled?.errorReason ?? (required === null ? null : errorOf(required)),
  };
}

/** The `error` of a demand for payment: base64 of JSON. */
function errorOf(header: string): string | null {
  const parsed: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  if (typeof parsed !== "object" || parsed === null || !("error" in parsed)) return null;
  return typeof parsed.error === "string" ? parsed.error : null;
}

function lower(text: `0x${string}`): `0x${string}` {
  return text.toLowerCase() as `0x${string}`;
}
