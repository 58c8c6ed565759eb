/** Who sells over x402: the official resource server, with the official facilitator inside. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { x402Facilitator } from "@x402/core/facilitator";
import { x402ResourceServer } from "@x402/core/server";
import type { FacilitatorClient } from "@x402/core/server";
import type { Network } from "@x402/core/types";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as FacilitatorScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmScheme as ServerScheme } from "@x402/evm/exact/server";
import { paymentMiddleware } from "@x402/express";
import {
  PAYMENT_IDENTIFIER,
  declarePaymentIdentifierExtension,
} from "@x402/extensions/payment-identifier";
import express from "express";
import type { RequestHandler } from "express";
import { createWalletClient, defineChain, http, publicActions } from "viem";
import { mnemonicToAccount } from "viem/accounts";

import { startRpcProxy } from "../../../src/sandbox/chain/rpc-proxy.ts";
import type { ChainWorld } from "../chain-world.ts";

/** The price of the goods, in units of the token. */
export const PRICE = 10_000n;
export const GOODS = "/goods";
// The well-known accounts of a local node, which it can sign for as well: so a test can reprice.
const MNEMONIC = "test test test test test test test test test test test junk";
/** The node's account that settles. */
export const FACILITATOR_INDEX = 1;
// Where clients expect Multicall3 on every chain; without it a refusal is diagnosed less exactly.
const MULTICALL = "0xcA11bde05977b3631167028862bE2a173976CA11";
const POLL_MS = 10;

/** A running shop. */
export interface Shop {
  readonly url: string;
  /** How often the goods were made: paying and getting are two things. */
  readonly served: () => number;
  /** How long the facilitator waits for a receipt before it answers `settlement_pending`. */
  readonly waitFor: (milliseconds: number) => void;
  /** Has the facilitator asked its node about this transaction, and so seen that it waits? */
  readonly hasLookedAt: (txHash: string) => boolean;
  readonly close: () => Promise<void>;
}

// Longer than any local block takes, also on a machine under full load.
const PATIENCE_MS = 10_000;

/** Opens a shop; `front` stands in front of the official middleware. */
export async function openShop(evm: ChainWorld, front?: RequestHandler): Promise<Shop> {
  const network: Network = `eip155:${String(evm.anvil.chainId)}`;
  const batcher = await evm.chain.deployBatcher();
  const code = await evm.anvil.rpc("eth_getCode", [batcher, "latest"]);
  await evm.anvil.rpc("anvil_setCode", [MULTICALL, code]);
  const node = await startRpcProxy(evm.anvil.url);
  let patience = PATIENCE_MS;
  const seller = new x402ResourceServer(facilitatorOf(evm, node.url, network, () => patience));
  seller.register(network, new ServerScheme());
  const { address: asset, name, version } = evm.token;
  const price = { amount: String(PRICE), asset, extra: { name, version } };
  const accepts = { scheme: "exact", payTo: evm.payee.address, price, network };
  const extensions = { [PAYMENT_IDENTIFIER]: declarePaymentIdentifierExtension() };
  let served = 0;
  const app = express();
  if (front !== undefined) app.use(front);
  app.use(paymentMiddleware({ [`GET ${GOODS}`]: { accepts, extensions } }, seller));
  app.get(GOODS, (_request, response) => {
    served += 1;
    response.json({ goods: served });
  });
  const server = createServer((request, response) => {
    app(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    served: () => served,
    waitFor: (milliseconds) => {
      patience = milliseconds;
    },
    hasLookedAt: (txHash) =>
      node.journal.some(
        ({ method, params }) => method === "eth_getTransactionByHash" && params[0] === txHash,
      ),
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await node.close();
    },
  };
}

function facilitatorOf(
  evm: ChainWorld,
  url: string,
  network: Network,
  patience: () => number,
): FacilitatorClient {
  const account = mnemonicToAccount(MNEMONIC, { addressIndex: FACILITATOR_INDEX });
  const chain = defineChain({
    id: evm.anvil.chainId,
    name: "local",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  const transport = http(url, { retryCount: 0 });
  const client = createWalletClient({
    account,
    chain,
    transport,
    pollingInterval: POLL_MS,
    cacheTime: 0,
  }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    getCode: (args) => client.getCode(args),
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: (args) =>
      client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
    writeContract: (args) => client.writeContract({ ...args, account, chain }),
    sendTransaction: (args) => client.sendTransaction({ ...args, account, chain }),
    waitForTransactionReceipt: (args) =>
      client.waitForTransactionReceipt({ ...args, timeout: patience() }),
  });
  const facilitator = new x402Facilitator().register(network, new FacilitatorScheme(signer));
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => {
      const { kinds, ...rest } = facilitator.getSupported();
      return { ...rest, kinds: kinds.map((kind) => ({ ...kind, network })) };
    },
  };
}
