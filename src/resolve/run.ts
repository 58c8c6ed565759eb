/** The resolver: looks at due ambiguous rows, decides from proof, writes, records. */
import { isChainScope } from "../core/chain.ts";
import { isIntentState } from "../core/states.ts";
import { UnreadableError } from "../core/errors.ts";
import { dropSettled, dueRows, enrol, leaveLadder, wakeOperations } from "../store/ladder.ts";
import type { DueRow } from "../store/ladder.ts";
import type { Db } from "../store/pool.ts";
import { asOnlyResolver } from "../store/resolver-lock.ts";
import { attemptRange } from "./absence.ts";
import { resolveOnChain } from "./chain/resolve-chain.ts";
import { decide } from "./decide.ts";
import type { Decision } from "./decision.ts";
import type { ResolveDeps } from "./deps.ts";
import { candidateLimits } from "./ladder.ts";
import type { LadderRules } from "./ladder.ts";
import { listLooker } from "./list-looker.ts";
import type { ListLooker } from "./list-looker.ts";
import { readSituation } from "./read-situation.ts";
import { coverCandidates, refreshOwnObjects } from "./refresh.ts";
import type { Candidate } from "./refresh.ts";
import { proofOf } from "./proof.ts";
import { stripeSet } from "./row-write.ts";
import { settle } from "./settle.ts";
import type { LastLook, Situation } from "./situation.ts";

/** A scope that could not be read: nothing of it was decided. */
export interface FailedScope {
  readonly scope: string;
  readonly code: string;
  readonly message: string;
}

/** What one run did. */
export interface ResolveResult {
  /** True: another resolver was at work, so nothing was looked at here. */
  readonly busy: boolean;
  readonly looked: number;
  readonly applied: number;
  readonly suggested: number;
  /** Decisions that write nothing, by what they say. */
  readonly waiting: number;
  readonly held: number;
  readonly unproven: number;
  /** The row changed between the look and the write, or before the look. */
  readonly moved: number;
  readonly refused: number;
  readonly failed: readonly FailedScope[];
}

/** How a run is narrowed. */
export interface ResolveInput {
  /** `once`: every ambiguous row at once, whatever the ladder. */
  readonly all: boolean;
  /** Most rows that are looked at; the rest stays due. */
  readonly limit: number;
  readonly signal?: AbortSignal;
}

/** Rows of one regular run; a backlog is worked off over several beats. */
export const RESOLVE_ROWS_MAX = 1_000;

// Rows that share one walk and one re-read: large enough to share, small enough to stay current.
const BATCH_ROWS = 100;

type Counts = {
  -readonly [Name in keyof Omit<ResolveResult, "busy" | "failed">]: number;
} & { readonly failed: FailedScope[] };

/**
 * Looks at due rows and settles what can be proven. A scope that cannot be read is told in
 * `failed`, and nothing of it is decided (case B26); its rows stay due. The same when the team's
 * database is out of reach. `RESOLVE=off` looks at nothing.
 */
export async function resolveDue(deps: ResolveDeps, input: ResolveInput): Promise<ResolveResult> {
  const counts = noCounts();
  if (deps.mode === "off") return { busy: false, ...counts };
  const { signal } = input;
  const waiting = { wait: input.all, ...(signal === undefined ? {} : { signal }) };
  const done = await asOnlyResolver(deps.pool, waiting, async () => {
    const now = await deps.now();
    await dropSettled(deps.pool);
    await enrol(deps.pool, candidateLimits(deps.rules, now), { everything: input.all });
    await resolveBatches(deps, input, counts);
    return true;
  });
  return { busy: done === null, ...counts };
}

/** Makes ambiguous rows of touched operations due now: a new fact may settle them. */
export async function wake(
  db: Db,
  input: {
    readonly operationIds: readonly string[];
    readonly rules: LadderRules;
    readonly now: Date;
  },
): Promise<void> {
  await wakeOperations(db, candidateLimits(input.rules, input.now), input.operationIds);
}

function noCounts(): Counts {
  return {
    looked: 0,
    applied: 0,
    suggested: 0,
    waiting: 0,
    held: 0,
    unproven: 0,
    moved: 0,
    refused: 0,
    failed: [],
  };
}

async function resolveBatches(
  deps: ResolveDeps,
  input: ResolveInput,
  counts: Counts,
): Promise<void> {
  let after = "";
  let left = input.limit;
  while (left > 0 && input.signal?.aborted !== true) {
    const now = await deps.now();
    const limit = Math.min(left, BATCH_ROWS);
    const rows = await dueRows(deps.pool, { now, all: input.all, after, limit });
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.intentId;
    left -= rows.length;
    for (const [scope, due] of byScope(rows)) {
      // A scope that failed once in this run is not asked again.
      if (counts.failed.some((failure) => failure.scope === scope)) continue;
      await resolveScopeSafely(deps, { scope, due, input, counts });
    }
  }
}

function byScope(rows: readonly DueRow[]): Map<string, DueRow[]> {
  const groups = new Map<string, DueRow[]>();
  for (const row of rows) groups.set(row.scope, [...(groups.get(row.scope) ?? []), row]);
  return groups;
}

interface ScopeWork {
  readonly scope: string;
  readonly due: readonly DueRow[];
  readonly input: ResolveInput;
  readonly counts: Counts;
}

async function resolveScopeSafely(deps: ResolveDeps, work: ScopeWork): Promise<void> {
  try {
    await resolveScope(deps, work);
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    const failure = { scope: work.scope, code: error.code, message: error.message };
    deps.log.warn("nothing is decided: the scope could not be read", { ...failure });
    work.counts.failed.push(failure);
  }
}

async function resolveScope(deps: ResolveDeps, work: ScopeWork): Promise<void> {
  const { scope, counts } = work;
  const candidates = await stillAmbiguous(deps, work);
  if (candidates.length === 0) return;
  await deps.place();
  if (isChainScope(scope)) return resolveChainScope(deps, candidates, work);
  const looks = await readFromStripe(deps, { scope, candidates, input: work.input });
  const lookAtLists = listLooker(deps, scope, candidates);
  for (const candidate of candidates) {
    if (work.input.signal?.aborted === true) return;
    const look = looks.get(candidate.row.intentId) ?? null;
    await resolveOne(deps, { candidate, look, lookAtLists, counts });
  }
}

async function resolveChainScope(
  deps: ResolveDeps,
  candidates: readonly Candidate[],
  work: ScopeWork,
): Promise<void> {
  for (const candidate of candidates) {
    if (work.input.signal?.aborted === true) return;
    const done = await resolveOnChain(deps, candidate);
    if (done === null) {
      work.counts.moved += 1;
      continue;
    }
    work.counts.looked += 1;
    count(work.counts, done.decision, done.outcome);
  }
}

/** Re-reads the rows from the team's table: one that moved leaves the ladder, early. */
async function stillAmbiguous(deps: ResolveDeps, work: ScopeWork): Promise<Candidate[]> {
  const rows = await deps.local.reread(work.due.map((due) => due.intentId));
  const byId = new Map(rows.map((row) => [row.intentId, row]));
  const candidates: Candidate[] = [];
  const moved: string[] = [];
  for (const due of work.due) {
    const row = byId.get(due.intentId);
    const same =
      row?.state === due.state && new Date(row.updatedAt).getTime() === due.since.getTime();
    if (same) candidates.push({ due, row });
    else moved.push(due.intentId);
  }
  work.counts.moved += moved.length;
  await leaveLadder(deps.pool, moved);
  return candidates;
}

async function readFromStripe(
  deps: ResolveDeps,
  work: {
    readonly scope: string;
    readonly candidates: readonly Candidate[];
    readonly input: ResolveInput;
  },
): Promise<ReadonlyMap<string, LastLook>> {
  if (deps.stripe === null) return new Map();
  const { pool, rules, stripe } = deps;
  const refreshing = { pool, rules, stripe, touchKnown: deps.local.touchKnown };
  const { scope, candidates, input } = work;
  const { signal } = input;
  await coverCandidates(refreshing, {
    scope,
    candidates,
    ...(signal === undefined ? {} : { signal }),
  });
  // What the walk brought is placed first: only then is it known which objects are a row's own.
  await deps.place();
  const now = await deps.now();
  const { looks, lookups } = await refreshOwnObjects(refreshing, { scope, candidates, now });
  if (lookups > 0) await deps.place();
  return looks;
}

interface OneRow {
  readonly candidate: Candidate;
  readonly look: LastLook | null;
  readonly lookAtLists: ListLooker;
  readonly counts: Counts;
}

async function resolveOne(deps: ResolveDeps, work: OneRow): Promise<void> {
  const { candidate, counts } = work;
  const now = await deps.now();
  const read = (look: LastLook | null): Promise<Situation | null> =>
    readSituation(deps.pool, {
      intentId: candidate.row.intentId,
      rules: deps.rules,
      touchKnown: deps.local.touchKnown,
      look,
    });
  let situation = await read(work.look);
  if (situation === null || !isIntentState(situation.intent.state)) {
    await leaveLadder(deps.pool, [candidate.row.intentId]);
    counts.moved += 1;
    return;
  }
  let decision = decide(situation, deps.rules, now);
  if (lacksOnlyTheLook(decision)) {
    const looked = await work.lookAtLists(attemptRange(situation.intent, deps.rules));
    if (looked.read) await deps.place();
    situation = (await read(looked.look)) ?? situation;
    decision = decide(situation, deps.rules, await deps.now());
  }
  counts.looked += 1;
  const decided = situation;
  const outcome = await settle(deps, {
    candidate,
    intent: decided.intent,
    decision,
    proof: proofOf(decided, decision),
    set: (writing, spelling) =>
      stripeSet({ row: candidate.row, situation: decided, decision: writing, spelling }),
    now,
  });
  count(counts, decision, outcome);
}

function lacksOnlyTheLook(decision: Decision): boolean {
  return (
    decision.kind === "unproven" && decision.missing.every((missing) => missing.what === "look")
  );
}

function count(
  counts: Counts,
  decision: Decision,
  outcome: Awaited<ReturnType<typeof settle>>,
): void {
  if (outcome === "applied") counts.applied += 1;
  else if (outcome === "suggested") counts.suggested += 1;
  else if (outcome === "lost_race") counts.moved += 1;
  else if (outcome === "refused") counts.refused += 1;
  else if (decision.kind === "hold") counts.held += 1;
  else if (decision.kind === "unproven") counts.unproven += 1;
  else counts.waiting += 1;
}
