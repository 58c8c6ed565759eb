/** Chains as the daemon uses them: the scan as a step, and the looks that verdicts need. */
import { UnreadableError } from "../core/errors.ts";
import { scheduleChain } from "../match/schedule-chain.ts";
import type { ChainSide } from "../resolve/deps.ts";
import { readChainIntent } from "../resolve/chain/read-chain-situation.ts";
import { addMs } from "../core/clock.ts";
import { lookNonce, lookTransaction } from "../sources/evm/look.ts";
import type { Progress } from "../sources/evm/read-final.ts";
import { scanChain } from "../sources/evm/scan.ts";
import type { ChainReader, ScanDeps } from "../sources/evm/scan.ts";
import { markChanged } from "../store/mirror-changed.ts";
import { LOGS_SOURCE } from "../sources/evm/store-range.ts";
import { exclusively } from "./exclusively.ts";
import type { StepFailure, StepResult } from "./steps.ts";
import type { Tallyd } from "./tallyd.ts";

/** How chains are read. */
export interface ScanInput {
  readonly signal: AbortSignal;
  /** True: waits for another replica that reads the chain, and reads on from there. */
  readonly wait?: boolean;
  /** Read at least back to this time. */
  readonly since?: Date;
  readonly onProgress?: (scope: string, progress: Progress) => void;
}

function scanDeps(tallyd: Tallyd): ScanDeps {
  const { pool, clock, log, settings } = tallyd;
  return { pool, clock, log, clockSlackMs: settings.rules.clockSlackMs };
}

/** Reads every chain up to its newest final block; one replica at a time reads a chain. */
export async function scanChains(tallyd: Tallyd, input: ScanInput): Promise<StepResult> {
  const sum = { blocks: 0, logs: 0, charges: 0, gone: 0 };
  const failures: StepFailure[] = [];
  for (const [scope, reader] of tallyd.chains) {
    const lock = { name: `scan:${scope}`, wait: input.wait === true, signal: input.signal };
    const scanned = await exclusively(tallyd.locks, lock, () => scanOne(tallyd, reader, input));
    // Another replica is at it.
    if (scanned === null) continue;
    for (const name of ["blocks", "logs", "charges", "gone"] as const) sum[name] += scanned[name];
    if (scanned.failed !== null) failures.push({ source: LOGS_SOURCE, ...scanned.failed });
  }
  if (tallyd.chains.size > 0) await tallyd.reads.flush().catch(() => undefined);
  return { counts: sum, failures };
}

async function scanOne(
  tallyd: Tallyd,
  reader: ChainReader,
  input: ScanInput,
): Promise<Awaited<ReturnType<typeof scanChain>>> {
  const scope = reader.chain.chainId;
  const { signal, since, onProgress } = input;
  const scanned = await scanChain(scanDeps(tallyd), reader, {
    signal,
    since: since ?? null,
    ...(onProgress === undefined
      ? {}
      : {
          onProgress: (progress: Progress) => {
            onProgress(scope, progress);
          },
        }),
  });
  if (scanned.read !== null) {
    const { rules } = tallyd.settings;
    await scheduleChain(
      tallyd.pool,
      { scope, ...scanned.read },
      { rules, now: await tallyd.now() },
    );
  }
  return scanned;
}

/** The resolver's view of a chain; `null`: it is not configured. */
export function chainSide(tallyd: Tallyd, scope: string): ChainSide | null {
  const reader = tallyd.chains.get(scope);
  if (reader === undefined) return null;
  const deps = scanDeps(tallyd);
  const [payer, ...more] = reader.chain.payers;
  return {
    onlyPayer: more.length === 0 ? (payer ?? null) : null,
    nonce: (question) => lookNonce(deps, reader, question),
    transaction: (txHash) => lookTransaction(deps, reader, txHash),
  };
}

/**
 * Looks for the payment of a recorded row right before its absence is spoken. What is found is
 * stored, and the row is judged anew. Throws UnreadableError.
 */
export async function lookForRow(
  tallyd: Tallyd,
  scope: string,
  intentId: string,
): Promise<boolean> {
  const { pool, settings } = tallyd;
  const side = chainSide(tallyd, scope);
  const intent = await readChainIntent(pool, { intentId, touchKnown: true });
  if (intent === null) return true;
  if (side === null) throw new UnreadableError("network", `${scope} is not in the chains block`);
  const authorizer = intent.payer ?? side.onlyPayer;
  const nonce =
    intent.nonce === null || authorizer === null
      ? null
      : await side.nonce({
          token: intent.asset,
          authorizer,
          nonce: intent.nonce,
          from: addMs(intent.createdAt, -settings.rules.clockSlackMs),
          to: addMs(intent.updatedAt, settings.rules.attemptWindowMs),
        });
  const transaction = intent.txHash === null ? null : await side.transaction(intent.txHash);
  // Reverted, canceled or paid elsewhere: a fact that has its own finding.
  const known =
    (nonce !== null && nonce.state !== "unused") ||
    transaction?.status === "reverted" ||
    transaction?.status === "pending";
  if (known) {
    const objects = [{ kind: "intent" as const, scope: "", id: intentId }];
    await markChanged(pool, { objects, now: await tallyd.now() });
  }
  return known;
}
