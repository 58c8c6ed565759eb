/**
 * Scopes: the name space of ids on a rail. Stripe: account and mode, `platform/test`,
 * `acct_1/live`. EVM: the CAIP-2 chain id, `eip155:8453`. Identity is always (scope, id): case B20.
 */
export const PLATFORM = "platform";

/** Scope of a Stripe account (`null` = the platform's own account) in one mode. */
export function stripeScope(account: string | null, livemode: boolean): string {
  return `${account ?? PLATFORM}/${livemode ? "live" : "test"}`;
}

/** The account to send as `Stripe-Account`, or `null` for the platform. */
export function stripeAccountOf(scope: string): string | null {
  const account = scope.split("/")[0] ?? PLATFORM;
  return account === PLATFORM ? null : account;
}

/** Every Stripe scope that is watched: the platform first, then the connected accounts. */
export function stripeScopes(settings: {
  readonly accounts: readonly string[];
  readonly livemode: boolean;
}): string[] {
  return [null, ...settings.accounts].map((account) => stripeScope(account, settings.livemode));
}

/** Every scope that is watched on any rail. */
export function watchedScopes(settings: {
  readonly stripe: { readonly accounts: readonly string[]; readonly livemode: boolean };
  readonly chains: readonly { readonly chainId: string }[];
}): string[] {
  return [...stripeScopes(settings.stripe), ...settings.chains.map((chain) => chain.chainId)];
}
