/** A local chain with a token, wallets and a door for faults, and the settings that watch it. */
import { ChainUnavailableError, startAnvil } from "../../src/sandbox/chain/anvil.ts";
import type { Anvil, AnvilOptions } from "../../src/sandbox/chain/anvil.ts";
import { openLocalChain } from "../../src/sandbox/chain/local-chain.ts";
import type { LocalChain, LocalToken, Wallet } from "../../src/sandbox/chain/local-types.ts";
import { startRpcProxy } from "../../src/sandbox/chain/rpc-proxy.ts";
import type { RpcProxy } from "../../src/sandbox/chain/rpc-proxy.ts";
import type { ChainSettings } from "../../src/core/settings.ts";

export const SCOPE = "eip155:31337";

/** The world. */
export interface ChainWorld {
  readonly anvil: Anvil;
  readonly chain: LocalChain;
  readonly proxy: RpcProxy;
  readonly token: LocalToken;
  readonly payer: Wallet;
  readonly payee: Wallet;
  readonly settings: (over?: Partial<ChainSettings>) => ChainSettings;
  readonly close: () => Promise<void>;
}

/** Why there is no chain on this machine; empty where there is one. Said loudly, never silently. */
export async function chainFault(): Promise<string> {
  try {
    const anvil = await startAnvil();
    await anvil.stop();
    return "";
  } catch (error) {
    if (!(error instanceof ChainUnavailableError)) throw error;
    process.stderr.write(`CHAIN TESTS SKIPPED: ${error.message}\n`);
    return error.message;
  }
}

// What the payer begins with: enough for any test.
const BALANCE = 1_000_000_000_000n;

/** Opens a world; `safe` is two blocks behind the head, `finalized` four, unless said otherwise. */
export async function openChainWorld(options: AnvilOptions = {}): Promise<ChainWorld> {
  const anvil = await startAnvil({ slotsInAnEpoch: 2, ...options });
  const chain = await openLocalChain(anvil);
  const proxy = await startRpcProxy(anvil.url);
  const token = await chain.deployToken();
  const payer = chain.newWallet();
  const payee = chain.newWallet();
  await chain.mint(token, payer.address, BALANCE);
  return {
    anvil,
    chain,
    proxy,
    token,
    payer,
    payee,
    settings: (over = {}) => ({
      chainId: SCOPE,
      rpcUrls: [proxy.url],
      tokens: [{ address: token.address, symbol: "USDC", decimals: 6 }],
      otherTokens: [],
      payers: [payer.address],
      payees: [payee.address],
      startBlock: 0,
      finality: "safe",
      mpp: null,
      ...over,
    }),
    close: async () => {
      await proxy.close();
      await anvil.stop();
    },
  };
}
