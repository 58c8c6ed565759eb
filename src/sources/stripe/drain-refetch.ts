import { addMs } from "../../core/clock.ts";
import { UnreadableError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { applyFacts } from "../../store/mirror.ts";
import {
  claimRefetches,
  failRefetch,
  finishRefetches,
  markRefetchMissing,
  postponeRefetches,
  requestRefetch,
} from "../../store/refetch.ts";
import type { ClaimedRefetch } from "../../store/refetch.ts";
import { withTx } from "../../store/tx.ts";
import type { Retrieved } from "./client.ts";
import type { LookupDeps } from "./lookup.ts";
import { readFetched, requestsOf } from "./lookup.ts";
import type { RunResult } from "./run-scopes.ts";
import { runTasks } from "./run-scopes.ts";

/** What became of the objects that were taken from the queue. */
export interface DrainResult extends RunResult {
  /** Read and believed. */
  readonly fetched: number;
  /** Denied or poorer than they will be: asked for again, later each time. */
  readonly notYet: number;
  /** Denied although they are older than the grace. */
  readonly missing: number;
  /** Stripe could not be asked. */
  readonly postponed: number;
}

/** Name of the source row of reads by id. */
export const LOOKUP_SOURCE = "stripe.lookup";

// Reads at once: below Stripe's concurrency limits, which lists and expands meet first.
const FETCHES_AT_ONCE_MAX = 4;
// Right after a success Stripe may deny an object for some seconds (case B23); after five minutes
// of asking, a denial is a fact: wrong account, wrong mode or wrong key.
const MISSING_GRACE_MS = 5 * 60_000;
// When Stripe cannot be asked, the queue waits this long unless Stripe names a time.
const POSTPONED_MS = 60_000;

type Tally = Record<"fetched" | "notYet" | "missing" | "postponed", number>;

/**
 * Reads the objects that are due in the queue, `limit` of them at most, and puts what they say into
 * the mirror. A denial inside the grace is "not yet"; past it, it is a fact of its own. When
 * Stripe cannot be asked, the rest of that scope is put off and no attempt is counted.
 */
export async function drainRefetch(
  deps: LookupDeps & { readonly log: Log },
  input: { readonly limit: number; readonly signal?: AbortSignal },
): Promise<DrainResult> {
  const now = deps.clock.now();
  const claimed = await claimRefetches(deps.pool, { scope: null, now, limit: input.limit });
  const tally: Tally = { fetched: 0, notYet: 0, missing: 0, postponed: 0 };
  const scopes = [...new Set(claimed.map((row) => row.scope))].sort();
  const tasks = scopes.map((scope) => ({
    source: LOOKUP_SOURCE,
    scope,
    run: async () => {
      const rows = claimed.filter((row) => row.scope === scope);
      await drainScope(deps, { rows, ...input }, tally);
    },
  }));
  return { ...(await runTasks(deps, tasks)), ...tally };
}

async function drainScope(
  deps: LookupDeps,
  input: { readonly rows: readonly ClaimedRefetch[]; readonly signal?: AbortSignal },
  tally: Tally,
): Promise<void> {
  const waiting = [...input.rows];
  const failures: UnreadableError[] = [];
  const work = async (): Promise<void> => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      input.signal?.throwIfAborted();
      const failure = await drainOne(deps, row, tally);
      if (failure === null) continue;
      failures.push(failure);
      // One locked object says nothing about the others; anything else stops the scope.
      if (failure.code === "locked") continue;
      const rest = waiting.splice(0);
      tally.postponed += rest.length;
      await postpone(deps, rest, failure);
    }
  };
  await Promise.all(Array.from({ length: FETCHES_AT_ONCE_MAX }, work));
  const worst = failures.find((failure) => failure.code !== "locked") ?? failures[0];
  if (worst !== undefined) throw worst;
}

/** Reads and stores one object; returns why Stripe could not be asked, or null. */
async function drainOne(
  deps: LookupDeps,
  row: ClaimedRefetch,
  tally: Tally,
): Promise<UnreadableError | null> {
  let retrieved: Retrieved;
  try {
    retrieved = await deps.client.retrieve(row.scope, row.objectId);
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    if (error.code === "shape") {
      // The answer itself is of no use: this object's trouble, not the scope's.
      tally.notYet += 1;
      await withTx(deps.pool, (tx) =>
        failRefetch(tx, { ...row, error: error.message, now: deps.clock.now() }),
      );
      return null;
    }
    tally.postponed += 1;
    await postpone(deps, [row], error);
    return error;
  }
  tally[await storeOne(deps, row, retrieved)] += 1;
  return null;
}

async function storeOne(
  deps: LookupDeps,
  row: ClaimedRefetch,
  retrieved: Retrieved,
): Promise<"fetched" | "notYet" | "missing"> {
  const now = deps.clock.now();
  if (retrieved.kind === "missing") return denyOne(deps, row, now);
  const reading = readFetched(deps, { scope: row.scope, ...retrieved });
  const again = reading.refetch.find((item) => item.id === row.objectId);
  const others = requestsOf(row.scope, reading).filter((item) => item.objectId !== row.objectId);
  await withTx(deps.pool, async (tx) => {
    // The mirror keeps what it knows where this fetch is silent (case B23).
    await applyFacts(tx, reading.facts, now);
    await requestRefetch(tx, { requests: others, now });
    if (again === undefined) await finishRefetches(tx, [row]);
    else await failRefetch(tx, { ...row, error: again.reason, now });
  });
  return again === undefined ? "fetched" : "notYet";
}

async function denyOne(
  deps: LookupDeps,
  row: ClaimedRefetch,
  now: Date,
): Promise<"notYet" | "missing"> {
  const { scope, objectId } = row;
  const error = `Stripe knows no ${objectId} in ${scope}: check the account, the mode and the key`;
  const young = now.getTime() - row.firstAt.getTime() < MISSING_GRACE_MS;
  await withTx(deps.pool, async (tx) => {
    if (young) {
      await failRefetch(tx, { ...row, error, now });
      return;
    }
    const at = deps.client.stripeNow();
    await applyFacts(tx, [{ kind: "missing", scope, id: objectId, at }], now);
    await markRefetchMissing(tx, { ...row, error });
  });
  return young ? "notYet" : "missing";
}

async function postpone(
  deps: LookupDeps,
  keys: readonly ClaimedRefetch[],
  error: UnreadableError,
): Promise<void> {
  if (keys.length === 0) return;
  const until = addMs(deps.clock.now(), error.retryAfterMs ?? POSTPONED_MS);
  await postponeRefetches(deps.pool, { keys, until, error: error.message });
}
