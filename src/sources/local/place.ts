import { stripeScope } from "../../core/scope.ts";
import { canonicalNetwork } from "../../core/chain.ts";
import type { ChainSettings, Settings } from "../../core/settings.ts";

/** What decides where a row's money moves. */
export interface PlaceInput {
  readonly rail: string | null;
  readonly network: string | null;
  readonly chargeId: string | null;
  readonly nonce: string | null;
  readonly accountId: string;
}

/** The part of the settings that places a row. */
export interface PlaceSettings {
  readonly accounts: readonly string[];
  readonly livemode: boolean;
  readonly chains: readonly ChainSettings[];
}

/** The part of the settings that places rows. */
export function placeSettings(settings: Pick<Settings, "stripe" | "chains">): PlaceSettings {
  const { accounts, livemode } = settings.stripe;
  return { accounts, livemode, chains: settings.chains };
}

export type Place =
  | { readonly rail: "stripe" | "evm"; readonly scope: string }
  | { readonly field: "rail" | "network"; readonly seen: string; readonly allowed: string };

const HASH = /^0x[0-9a-f]{64}/i;
const CHAIN_CHARGE = /^eip155:\d+:0x/;

/**
 * Rail and scope of a row: from its `rail`, else from its network, charge id or nonce, else Stripe.
 * An account id names a Stripe account only when that account is configured; every other value is
 * a name of the team's own on the platform account (README.md, your table).
 */
export function placeRow(row: PlaceInput, settings: PlaceSettings): Place {
  const rail = row.rail?.trim().toLowerCase() ?? guessRail(row);
  if (rail === "stripe") {
    const account = settings.accounts.includes(row.accountId) ? row.accountId : null;
    return { rail, scope: stripeScope(account, settings.livemode) };
  }
  if (rail !== "evm") return { field: "rail", seen: rail, allowed: "stripe or evm" };
  const network = row.network ?? onlyChain(row, settings);
  const scope = network === undefined ? null : canonicalNetwork(network);
  if (scope !== null) return { rail, scope };
  return {
    field: "network",
    seen: network ?? "nothing",
    allowed: "a CAIP-2 id such as eip155:8453",
  };
}

function guessRail(row: PlaceInput): "stripe" | "evm" {
  const onChain =
    (row.network !== null && canonicalNetwork(row.network) !== null) ||
    [row.chargeId, row.nonce].some((mark) => mark !== null && HASH.test(mark)) ||
    (row.chargeId !== null && CHAIN_CHARGE.test(row.chargeId));
  return onChain ? "evm" : "stripe";
}

/** Without a network: the one in the charge id, or the only chain that is configured. */
function onlyChain(row: PlaceInput, settings: PlaceSettings): string | undefined {
  const named = /^(eip155:\d+):/.exec(row.chargeId ?? "")?.[1];
  return named ?? (settings.chains.length === 1 ? settings.chains[0]?.chainId : undefined);
}
