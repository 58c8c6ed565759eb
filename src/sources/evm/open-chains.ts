import type { ChainSettings } from "../../core/settings.ts";
import { openEndpoints } from "./endpoints.ts";
import type { ChainReader } from "./scan.ts";

/** Readers of all configured chains; nothing is asked yet. `count` is told of every call. */
export function openChains(
  chains: readonly ChainSettings[],
  count: (scope: string, method: string) => void,
): ReadonlyMap<string, ChainReader> {
  return new Map(
    chains.map((chain) => [
      chain.chainId,
      {
        chain,
        endpoints: openEndpoints(chain, (method) => {
          count(chain.chainId, method);
        }),
        checked: false,
      },
    ]),
  );
}
