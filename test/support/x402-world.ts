/**
 * The official x402 client, resource server and facilitator on a local chain, with a line between
 * client and server that loses answers.
 */
import type { AddressInfo } from "node:net";

import { x402Client } from "@x402/core/client";
import { x402Facilitator } from "@x402/core/facilitator";
import { x402ResourceServer } from "@x402/core/server";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as ClientScheme } from "@x402/evm/exact/client";
import { ExactEvmScheme as FacilitatorScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmScheme as ServerScheme } from "@x402/evm/exact/server";
import { paymentMiddleware } from "@x402/express";
import { wrapFetchWithPayment } from "@x402/fetch";
import express from "express";
import { createWalletClient, defineChain, http, publicActions } from "viem";

import type { Authorization, Hex } from "../../src/sandbox/chain/local-types.ts";
import type { ChainWorld } from "./chain-world.ts";
import { SCOPE } from "./chain-world.ts";

/** What a client signed. */
export interface Signed {
  readonly nonce: `0x${string}`;
  readonly validBefore: Date;
  readonly value: bigint;
  /** The header, as it was sent. */
  readonly header: string;
  /** The same for whoever submits it to the contract. */
  readonly authorization: Authorization;
}

/** What a client saw. */
export interface Seen {
  /** `null`: the answer was lost. */
  readonly status: number | null;
  readonly settled: Readonly<Record<string, unknown>> | null;
}

export interface X402World {
  /** Everything that was signed so far. */
  readonly signed: readonly Signed[];
  /** How often the goods were made. */
  readonly served: () => number;
  /** Pays for the resource with the official client; `lose`: the paid answer never arrives. */
  readonly buy: (options?: { readonly lose?: boolean }) => Promise<Seen>;
  /** Signs a payment and sends nothing. */
  readonly sign: () => Promise<Signed>;
  /** Sends a header that was signed before once more. */
  readonly resend: (header: string) => Promise<Seen>;
  readonly close: () => Promise<void>;
}

export const PRICE = 10_000n;
// The facilitator gives up on the receipt after this and says settlement_pending.
const CONFIRMATION_MS = 1_500;

/** Opens the three parts on a chain whose payer has a balance. */
export async function openX402(world: ChainWorld): Promise<X402World> {
  const { anvil, token, payer, payee } = world;
  const chain = defineChain({
    id: anvil.chainId,
    name: "local",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [anvil.url] } },
  });
  const account = world.chain.accounts[2];
  if (account === undefined) throw new Error("the chain has too few accounts");
  const client = createWalletClient({
    account,
    chain,
    transport: http(anvil.url),
    pollingInterval: 30,
  }).extend(publicActions);
  const signer = toFacilitatorEvmSigner(
    { ...client, address: account } as unknown as Parameters<typeof toFacilitatorEvmSigner>[0],
    { confirmationTimeoutMs: CONFIRMATION_MS },
  );
  const facilitator = new x402Facilitator().register(SCOPE, new FacilitatorScheme(signer));
  const server = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: () => Promise.resolve(facilitator.getSupported() as never),
  }).register(SCOPE, new ServerScheme());
  let served = 0;
  const app = express();
  const price = {
    amount: String(PRICE),
    asset: token.address,
    extra: { name: token.name, version: token.version },
  };
  const accepts = { scheme: "exact", network: SCOPE, payTo: payee.address, price } as const;
  app.use(paymentMiddleware({ "GET /r": { accepts, description: "a resource" } }, server));
  app.get("/r", (_request, response) => {
    served += 1;
    response.json({ goods: served });
  });
  const listening = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => listening.once("listening", resolve));
  const url = `http://127.0.0.1:${String((listening.address() as AddressInfo).port)}/r`;
  const signed: Signed[] = [];
  return {
    signed,
    served: () => served,
    buy: (options = {}) => {
      const lose = options.lose === true ? "answer" : null;
      return buy({ url, world, signed, lose, payer });
    },
    sign: async () => {
      await buy({ url, world, signed, lose: "request", payer });
      const last = signed.at(-1);
      if (last === undefined) throw new Error("nothing was signed");
      return last;
    },
    resend: async (header) =>
      seenOf(await fetch(url, { headers: { "payment-signature": header } })),
    close: () =>
      new Promise((resolve) => {
        listening.closeAllConnections();
        listening.close(() => {
          resolve();
        });
      }),
  };
}

async function buy(work: {
  readonly url: string;
  readonly world: ChainWorld;
  readonly payer: ChainWorld["payer"];
  readonly signed: Signed[];
  readonly lose: "answer" | "request" | null;
}): Promise<Seen> {
  const { token } = work.world;
  const line: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const header = request.headers.get("payment-signature");
    if (header !== null) work.signed.push(signedOf(header));
    if (header !== null && work.lose === "request") throw new TypeError("fetch failed: not sent");
    const response = await fetch(request);
    if (header !== null && work.lose === "answer")
      throw new TypeError("fetch failed: the answer was lost");
    return response;
  };
  const client = new x402Client()
    .register(SCOPE, new ClientScheme(work.payer.account))
    .setSpendControls({ allowedAssets: [{ network: SCOPE, asset: token.address }] });
  try {
    return seenOf(await wrapFetchWithPayment(line, client)(work.url));
  } catch (error) {
    if (work.lose !== null) return { status: null, settled: null };
    throw error;
  }
}

function decoded(header: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(header, "base64").toString("utf8")) as Record<string, unknown>;
}

function signedOf(header: string): Signed {
  const { payload } = decoded(header) as {
    payload: {
      signature: Hex;
      authorization: { nonce: Hex; validBefore: string; value: string; from: Hex; to: Hex };
    };
  };
  const { nonce, validBefore, value, from, to } = payload.authorization;
  const terms = { from, to, value: BigInt(value), validBefore: BigInt(validBefore), nonce };
  return {
    nonce,
    validBefore: new Date(Number(validBefore) * 1_000),
    value: BigInt(value),
    header,
    authorization: { ...terms, signature: payload.signature },
  };
}

function seenOf(response: Response): Seen {
  const settled = response.headers.get("payment-response");
  return { status: response.status, settled: settled === null ? null : decoded(settled) };
}
