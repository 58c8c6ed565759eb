/** Blocks of a local chain: made, timed, lost, remembered. */
import type { Anvil } from "./anvil.ts";
import type { Hex, LocalChain, Moved, Reorged } from "./local-types.ts";

/** Gas of a transaction: enough for a batch of hundreds of transfers. */
export const GAS = "0x1c9c380";

/** The actions on blocks. */
export function blockActions({
  rpc,
}: Anvil): Pick<LocalChain, "automine" | "mine" | "remember" | "reorg" | "setNextTime"> {
  const comesBack = async (one: Reorged | Moved): Promise<readonly [unknown, number]> => {
    if (!("txHash" in one)) {
      const { block, ...tx } = one;
      return [{ ...tx, gas: GAS }, block];
    }
    const raw = await rpc("eth_getRawTransactionByHash", [one.txHash]);
    return [raw, one.block];
  };
  return {
    mine: async (blocks, secondsApart = 1) => {
      await rpc("anvil_mine", [hex(blocks), hex(secondsApart)]);
    },
    reorg: async (depth, again = []) => {
      await rpc("anvil_reorg", [depth, await Promise.all(again.map(comesBack))]);
    },
    automine: async (on) => {
      await rpc("evm_setAutomine", [on]);
    },
    setNextTime: async (seconds) => {
      await rpc("evm_setNextBlockTimestamp", [hex(seconds)]);
    },
    remember: async () => {
      const id = await rpc("evm_snapshot");
      return async () => {
        await rpc("evm_revert", [id]);
      };
    },
  };
}

function hex(value: number): Hex {
  return `0x${value.toString(16)}`;
}
