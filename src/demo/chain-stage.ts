/** The chain of the demo: a real EVM, a token, one wallet that pays and one that is paid. */
import { startAnvil } from "../sandbox/chain/anvil.ts";
import { openLocalChain } from "../sandbox/chain/local-chain.ts";
import type { LocalChain, LocalToken, Wallet } from "../sandbox/chain/local-types.ts";

export interface ChainStage {
  readonly chain: LocalChain;
  readonly token: LocalToken;
  readonly payer: Wallet;
  readonly payee: Wallet;
  /** Takes many calls into one transaction. */
  readonly batcher: `0x${string}`;
  /** What the daemon is told, as EVM_CHAINS. */
  readonly settings: string;
  readonly scope: string;
  readonly close: () => Promise<void>;
}

// A block a second, final after six: a demo of a minute sees payments become final, and one that is
// replaced two blocks later was not.
const BLOCK_SECONDS = 1;
const FINALITY_BLOCKS = 6;
const BALANCE = 1_000_000_000_000n;

/** Starts the chain. Throws ChainUnavailableError where there is no binary for this machine. */
export async function openChainStage(): Promise<ChainStage> {
  const anvil = await startAnvil({ blockTimeSeconds: BLOCK_SECONDS });
  try {
    const chain = await openLocalChain(anvil);
    const token = await chain.deployToken();
    const batcher = await chain.deployBatcher();
    const [payer, payee] = [chain.newWallet(), chain.newWallet()];
    await chain.mint(token, payer.address, BALANCE);
    const scope = `eip155:${String(anvil.chainId)}`;
    const block = {
      chainId: scope,
      rpcUrls: [anvil.url],
      tokens: [{ address: token.address, symbol: "USDC", decimals: 6 }],
      payers: [payer.address],
      payees: [payee.address],
      startBlock: 0,
      finality: FINALITY_BLOCKS,
    };
    const settings = JSON.stringify([block]);
    return { chain, token, payer, payee, batcher, settings, scope, close: anvil.stop };
  } catch (error) {
    await anvil.stop();
    throw error;
  }
}
