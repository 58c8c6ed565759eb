import { chainChargeId } from "../core/chain.ts";
import type { Sent } from "../sandbox/chain/local-types.ts";

/** The identity of the one transfer of a transaction. */
export function chargeIdOf(stage: { readonly scope: string }, sent: Sent): string {
  return chainChargeId(stage.scope, sent.txHash, sent.transfers[0] ?? 0);
}
