/** What doctor says about each configured chain. */
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import type { ChainSettings } from "../core/settings.ts";
import { tokenFaults } from "../sources/evm/balance.ts";
import { openEndpoints } from "../sources/evm/endpoints.ts";
import { RpcError } from "../sources/evm/rpc-errors.ts";
import { survey } from "../sources/evm/survey.ts";
import type { Survey, Usable } from "../sources/evm/survey.ts";
import { getChain } from "../store/evm-chain.ts";
import type { ChainRow } from "../store/evm-chain.ts";
import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

// A block every few seconds is usual; a head this old is a node that does not move on.
const HEAD_AGE_MAX_MS = 10 * 60_000;

/** Asks every endpoint of every chain. */
export async function checkChains(input: {
  readonly chains: readonly ChainSettings[];
  /** tallyd's own database; an error: out of reach. */
  readonly own: Pool | Error;
  readonly clock: Clock;
}): Promise<Check[]> {
  const checks: Check[] = [];
  for (const chain of input.chains) checks.push(...(await checkChain(chain, input)));
  return checks;
}

async function checkChain(
  chain: ChainSettings,
  { own, clock }: { readonly own: Pool | Error; readonly clock: Clock },
): Promise<Check[]> {
  const known = await knownOf(own, chain.chainId);
  const endpoints = openEndpoints(chain, () => undefined);
  const nowMs = clock.now().getTime();
  const seen = await survey(chain, endpoints, { known, nowMs });
  const checks = [...unusableChecks(chain, seen), ...usableChecks(chain, seen, nowMs)];
  const [first] = seen.usable;
  if (first !== undefined) {
    checks.push(await tokenCheck(chain, first), historyCheck(chain, known, first));
  }
  if (chain.rpcUrls.length === 1) {
    checks.push(
      told(chain.chainId, "remark", {
        seen: "one endpoint",
        meaning: "every range is read twice from it, and its balances prove it; nobody else can",
        advice: "add an endpoint of another vendor to chains.rpcUrls",
      }),
    );
  }
  return checks;
}

async function knownOf(own: Pool | Error, scope: string): Promise<ChainRow> {
  const nothing: ChainRow = {
    scope,
    ...{ genesisHash: null, fromBlock: null, final: null, head: null, reorganised: 0 },
    ...{ stoppedAt: null, stoppedReason: null },
  };
  if (own instanceof Error) return nothing;
  const found = await own.query<{ there: boolean }>(
    "select to_regclass('tallyd.evm_chain') is not null as there",
  );
  return found.rows[0]?.there === true ? getChain(own, scope) : nothing;
}

function unusableChecks(chain: ChainSettings, seen: Survey): Check[] {
  return seen.unusable.map(({ endpoint, reason, foreign, state }) => {
    const name = `${chain.chainId} ${endpoint.name}`;
    if (foreign) {
      return told(name, "fault", {
        seen: reason,
        meaning: "nothing is read from it",
        advice: "correct chains.rpcUrls; if a test chain was reset, give tallyd a fresh database",
      });
    }
    const advice =
      state === "behind"
        ? "wait, or take it out of chains.rpcUrls"
        : "check the address and the key of this endpoint";
    return unreadable(name, new Error(reason), advice);
  });
}

function usableChecks(chain: ChainSettings, seen: Survey, nowMs: number): Check[] {
  return seen.usable.map(({ endpoint, head, final }) => {
    const name = `${chain.chainId} ${endpoint.name}`;
    const age = nowMs - head.time.getTime();
    const behind = Math.round((head.time.getTime() - final.time.getTime()) / 1_000);
    const text =
      `block ${String(head.number)} of ${head.time.toISOString()}, ` +
      `final (${String(chain.finality)}) ${String(final.number)}, ${String(behind)} s behind`;
    if (age <= HEAD_AGE_MAX_MS) return fine(name, text);
    return told(name, "warning", {
      seen: text,
      meaning: "its newest block is old: payments since then cannot be seen",
      advice: "the node or the chain stands still: ask another endpoint",
    });
  });
}

async function tokenCheck(chain: ChainSettings, usable: Usable): Promise<Check> {
  const name = `${chain.chainId} tokens`;
  try {
    const faults = await tokenFaults(chain, usable.endpoint, usable.head.number);
    if (faults.length === 0) {
      return fine(name, chain.tokens.map((token) => `${token.symbol} ${token.address}`).join(", "));
    }
    return told(name, "fault", {
      seen: faults.join("; "),
      meaning: "the chain is not read: amounts would mean something else",
      advice: "correct chains.tokens",
    });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return unreadable(name, error, "run doctor again");
  }
}

function historyCheck(chain: ChainSettings, known: ChainRow, usable: Usable): Check {
  const name = `${chain.chainId} read`;
  if (known.stoppedReason !== null) {
    return told(name, "fault", {
      seen: `stopped: ${known.stoppedReason}`,
      meaning: "nothing of it is concluded or touched",
      advice: "see the endpoints above",
    });
  }
  if (known.final === null || known.fromBlock === null) {
    return fine(name, "nothing yet: the first pass begins");
  }
  const left = usable.final.number - known.final.number;
  return fine(
    name,
    `blocks ${String(known.fromBlock)} to ${String(known.final.number)}, ` +
      `${String(Math.max(0, left))} final ones to read, ` +
      `${String(known.reorganised)} reorganisations of the tip seen`,
  );
}
