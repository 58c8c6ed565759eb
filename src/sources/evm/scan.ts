/**
 * One pass over one chain: look at the endpoints, read what has become final, read the tip anew,
 * compare the balances. Nothing is thrown for what the outside does: it is recorded and answered.
 */
import type { UnreadableCode } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Clock } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import type { Pool } from "pg";
import { getChain, saveGenesis, saveStop } from "../../store/evm-chain.ts";
import type { ChainRow } from "../../store/evm-chain.ts";
import { markFailed, markOk } from "../../store/sources.ts";
import { checkBalances, tokenFaults } from "./balance.ts";
import type { Endpoint } from "./endpoints.ts";
import { recovered } from "./endpoints.ts";
import { firstBlock } from "./first-block.ts";
import { firstContact } from "./first-contact.ts";
import { noteEndpoints, setAside } from "./note-endpoints.ts";
import { proveBalances } from "./prove-balances.ts";
import { readFinal } from "./read-final.ts";
import type { Progress } from "./read-final.ts";
import { readTip } from "./read-tip.ts";
import { RpcError } from "./rpc-errors.ts";
import type { RpcFault } from "./rpc-errors.ts";
import { LOGS_SOURCE } from "./store-range.ts";
import { survey } from "./survey.ts";
import type { Survey, Usable } from "./survey.ts";

/** A chain that is read, with the memory of its endpoints. */
export interface ChainReader {
  readonly chain: ChainSettings;
  readonly endpoints: readonly Endpoint[];
  /** Tokens that were checked against their contracts by this process. */
  checked: boolean;
}

/** What scanning needs. */
export interface ScanDeps {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  /** How far clocks of ours and the chain's may differ. */
  readonly clockSlackMs: number;
}

/** How a pass is run. */
export interface ScanOptions {
  readonly signal: AbortSignal;
  /** Read at least back to this time; `null`: as configured. */
  readonly since?: Date | null;
  readonly onProgress?: (progress: Progress) => void;
}

/** What a pass did. */
export interface Scanned {
  readonly scope: string;
  readonly blocks: number;
  readonly logs: number;
  readonly charges: number;
  /** Provisional payments that a reorganisation took away. */
  readonly gone: number;
  /** The time that has become completely read; `null`: nothing has. */
  readonly read: { readonly from: Date | null; readonly to: Date } | null;
  /** `null`: the chain was read up to its newest final block. */
  readonly failed: {
    readonly scope: string;
    readonly code: UnreadableCode;
    readonly message: string;
  } | null;
}

const CODES: Readonly<Record<RpcFault, UnreadableCode>> = {
  too_large: "server",
  lagging: "network",
  rate_limit: "rate_limit",
  refused: "auth",
  unsupported: "server",
  unreachable: "network",
  broken: "shape",
};

/** The code under which a refusal is told. */
export function codeOf(error: RpcError): UnreadableCode {
  return CODES[error.fault];
}

/** Nothing may be concluded about this chain: it stands still until a person has looked. */
class StoppedError extends Error {}

/** Reads a chain once. */
export async function scanChain(
  deps: ScanDeps,
  reader: ChainReader,
  options: ScanOptions,
): Promise<Scanned> {
  const scope = reader.chain.chainId;
  const counts = { blocks: 0, logs: 0, charges: 0, gone: 0 };
  const before = await getChain(deps.pool, scope);
  const source = { source: LOGS_SOURCE, scope };
  const failed = async (code: UnreadableCode, message: string): Promise<Scanned["failed"]> => {
    await markFailed(deps.pool, { ...source, code, message, at: deps.clock.now() });
    deps.log.warn("a chain could not be read to its end", { scope, code, message });
    return { scope, code, message };
  };
  let failure: Scanned["failed"] = null;
  try {
    const trouble = await passWithWhoeverAnswers(deps, { reader, options, known: before, counts });
    if (trouble === null) await markOk(deps.pool, { ...source, at: deps.clock.now() });
    else failure = await failed("shape", trouble);
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof StoppedError) {
      await saveStop(deps.pool, { scope, reason: error.message, at: deps.clock.now() });
      failure = await failed("shape", error.message);
    } else if (error instanceof RpcError) {
      failure = await failed(codeOf(error), error.message);
    } else {
      throw error;
    }
  }
  const after = await getChain(deps.pool, scope);
  const moved = after.final !== null && after.final.number !== before.final?.number;
  const read = moved ? { from: before.final?.time ?? null, to: after.final.time } : null;
  return { scope, ...counts, read, failed: failure };
}

interface Pass {
  readonly reader: ChainReader;
  readonly options: ScanOptions;
  readonly known: ChainRow;
  readonly counts: { blocks: number; logs: number; charges: number; gone: number };
}

// What an endpoint may be left out for while another one goes on. One that lags is only waited for.
const LEFT_OUT_FOR: ReadonlySet<RpcFault> = new Set([
  ...(["rate_limit", "refused", "unsupported", "unreachable", "broken"] as const),
]);

/** A pass; an endpoint that fails in the middle of it is left out, and the others begin anew. */
async function passWithWhoeverAnswers(deps: ScanDeps, work: Pass): Promise<string | null> {
  const { endpoints } = work.reader;
  for (let left = endpoints.length; left > 1; left -= 1) {
    try {
      return await pass(deps, { ...work, known: await getChain(deps.pool, work.known.scope) });
    } catch (error) {
      if (!(error instanceof RpcError) || !LEFT_OUT_FOR.has(error.fault)) throw error;
      const nowMs = deps.clock.now().getTime();
      const bad = endpoints.find((one) => one.name === error.endpoint);
      const others = endpoints.filter((one) => one !== bad && one.restUntilMs <= nowMs);
      if (bad === undefined || others.length === 0) throw error;
      await setAside(deps, work.reader.chain, { endpoint: bad, seen: error.message }, error);
    }
  }
  return pass(deps, { ...work, known: await getChain(deps.pool, work.known.scope) });
}

/** Answers what is wrong although everything was read; `null`: nothing. */
async function pass(deps: ScanDeps, work: Pass): Promise<string | null> {
  const { reader, options, known } = work;
  const { chain, endpoints } = reader;
  const { signal } = options;
  const nowMs = deps.clock.now().getTime();
  const seen = await survey(chain, endpoints, { known, nowMs, signal });
  await noteEndpoints(deps, chain, seen);
  const [first, ...others] =
    known.genesisHash === null ? await meet(deps, chain, seen.usable) : seen.usable;
  if (first === undefined) throw nobodyLeft(seen);
  await saveGenesis(deps.pool, chain.chainId, first.genesis.hash);
  await checkTokens(reader, first);
  if (known.stoppedAt !== null) {
    await saveStop(deps.pool, { scope: chain.chainId, reason: null, at: deps.clock.now() });
  }
  // One that lied or failed a moment ago is no witness; alone, an endpoint is asked twice.
  const witness = others.find((one) => one.endpoint.restUntilMs <= nowMs) ?? first;
  const target = first.final.number <= witness.head.number ? first.final : witness.final;
  const from = await firstBlock(deps, {
    chain,
    known,
    usable: first,
    since: options.since ?? null,
  });
  const pair = { first: first.endpoint, second: witness.endpoint };
  const done = await readFinal(deps, { ...work, chain, pair, target, from });
  for (const liar of done.liars) await setAside(deps, chain, liar);
  const tip = await readTip(deps, { chain, usable: first, known, final: target, signal });
  work.counts.logs += tip.logs;
  work.counts.charges += tip.charges;
  work.counts.gone += tip.gone;
  const liars = new Set(done.liars.map((liar) => liar.endpoint));
  for (const one of [pair.first, pair.second]) if (!liars.has(one)) recovered(one);
  const wrong = await balanced(deps, work, pair);
  return wrong ?? (done.liars.length > 0 ? liarText(done.liars) : null);
}

function liarText(
  liars: readonly { readonly endpoint: Endpoint; readonly seen: string }[],
): string {
  return liars.map(({ endpoint, seen }) => `${endpoint.name} ${seen}`).join("; ");
}

async function balanced(
  deps: ScanDeps,
  work: Pass,
  pair: { readonly first: Endpoint; readonly second: Endpoint },
): Promise<string | null> {
  const { chain } = work.reader;
  const now = await getChain(deps.pool, chain.chainId);
  if (now.final === null || now.fromBlock === null) return null;
  const check = {
    endpoint: pair.second,
    fromBlock: now.fromBlock,
    block: now.final.number,
    now: deps.clock.now(),
  };
  const wrong = await checkBalances(deps.pool, chain, check);
  if (wrong.length === 0) return null;
  const left = await proveBalances(deps, { chain, check, wrong, signal: work.options.signal });
  work.counts.charges += left.charges;
  const missing =
    left.charges === 0 ? [] : await leftOut(deps, chain, { ...pair, transfers: left.charges });
  if (left.wrong.length === 0) return missing.length === 0 ? null : liarText(missing);
  return left.wrong
    .map(
      (one) =>
        `the balance of ${one.address} is ${String(one.actual)}, ` +
        `its transfers explain ${String(one.expected)}`,
    )
    .join("; ");
}

/** Both readings of a range agreed and left something out, which the balances have shown. */
async function leftOut(
  deps: ScanDeps,
  chain: ChainSettings,
  work: { readonly first: Endpoint; readonly second: Endpoint; readonly transfers: number },
): Promise<{ readonly endpoint: Endpoint; readonly seen: string }[]> {
  const seen = `gave lists without ${String(work.transfers)} transfers that balances prove`;
  const liars = [...new Set([work.first, work.second])].map((endpoint) => ({ endpoint, seen }));
  for (const liar of liars) await setAside(deps, chain, liar);
  return liars;
}

/** Nothing is known of the chain yet: whom to believe. Nothing is stored before that is clear. */
async function meet(
  deps: ScanDeps,
  chain: ChainSettings,
  usable: readonly Usable[],
): Promise<readonly Usable[]> {
  const met = firstContact(usable);
  if (!met.agreed) throw new StoppedError(met.reason);
  for (const stranger of met.strangers) await setAside(deps, chain, stranger);
  const [first] = met.usable;
  if (met.alone && first !== undefined) {
    const said = { endpoint: first.endpoint.name, block: first.genesis.hash };
    deps.log.warn("the first block of a chain is unconfirmed: only one endpoint tells it", {
      ...{ scope: chain.chainId, ...said },
    });
  }
  return met.usable;
}

function nobodyLeft(seen: Survey): Error {
  const reasons = seen.unusable.map((one) => `${one.endpoint.name}: ${one.reason}`).join("; ");
  // Endpoints that are out of reach may come back; those that speak of another past will not.
  const foreign = seen.unusable.filter((one) => one.foreign);
  if (foreign.length > 0 && seen.unusable.every((one) => one.foreign || one.state === "failing")) {
    return new StoppedError(reasons);
  }
  const error = seen.unusable.find((one) => one.error !== null)?.error;
  return new RpcError(error?.fault ?? "lagging", reasons);
}

async function checkTokens(reader: ChainReader, usable: Usable): Promise<void> {
  if (reader.checked) return;
  const faults = await tokenFaults(reader.chain, usable.endpoint, usable.head.number);
  if (faults.length > 0) throw new StoppedError(faults.join("; "));
  reader.checked = true;
}
