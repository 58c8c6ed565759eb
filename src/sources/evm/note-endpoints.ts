/** How the endpoints of a chain do, as it is stored: who is read from, who is left alone, why. */
import type { Pool } from "pg";

import type { Clock } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import { keepEndpoints, saveEndpoint } from "../../store/evm-chain.ts";
import type { Endpoint } from "./endpoints.ts";
import { rest } from "./endpoints.ts";
import type { RpcError } from "./rpc-errors.ts";
import type { Survey } from "./survey.ts";

interface NoteDeps {
  readonly pool: Pool;
  readonly clock: Clock;
}

/** Notes what a look at the endpoints showed. */
export async function noteEndpoints(
  deps: NoteDeps,
  chain: ChainSettings,
  seen: Survey,
): Promise<void> {
  const at = deps.clock.now();
  const scope = chain.chainId;
  const all = [...seen.usable, ...seen.unusable].map((one) => one.endpoint.name);
  await keepEndpoints(deps.pool, scope, all);
  for (const { endpoint, state, reason, error } of seen.unusable) {
    rest(endpoint, at.getTime(), error?.retryAfterMs ?? null);
    const headBlock = null;
    await saveEndpoint(deps.pool, { scope, endpoint: endpoint.name, state, reason, headBlock, at });
  }
  for (const { endpoint, head } of seen.usable) {
    // One that was set aside stays so until its time is over.
    if (endpoint.restUntilMs > at.getTime()) continue;
    endpoint.restUntilMs = 0;
    const ok = { state: "ok" as const, reason: null, headBlock: head.number, at };
    await saveEndpoint(deps.pool, { scope, endpoint: endpoint.name, ...ok });
  }
}

/** Leaves an endpoint alone for a while, and says why. */
export async function setAside(
  deps: NoteDeps,
  chain: ChainSettings,
  liar: { readonly endpoint: Endpoint; readonly seen: string },
  error: RpcError | null = null,
): Promise<void> {
  const at = deps.clock.now();
  rest(liar.endpoint, at.getTime(), error?.retryAfterMs ?? null);
  await saveEndpoint(deps.pool, {
    scope: chain.chainId,
    endpoint: liar.endpoint.name,
    // Too many requests are weather, told when they last.
    state: error?.fault === "rate_limit" ? "failing" : "aside",
    reason: liar.seen,
    headBlock: null,
    at,
  });
}
