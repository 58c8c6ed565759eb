/**
 * Reads from Stripe what the decisions of one scope need, thriftily (README.md, what reading
 * costs): one shared
 * walk for all rows, and look-ups by id only for their own objects that are not final.
 */
import type { IntentRow } from "../core/intent.ts";
import type { DueRow } from "../store/ladder.ts";
import type { Db } from "../store/pool.ts";
import { attemptRange } from "./absence.ts";
import type { ProofRules } from "./absence.ts";
import type { StripeSide } from "./deps.ts";
import { mergeRanges } from "./merge-ranges.ts";
import { readOwnCharges } from "./own-charges.ts";
import { readOpenIntent, readOwnPayments } from "./read-situation.ts";
import type { LastLook, OpenIntent, OwnCharge, OwnPayment, Range } from "./situation.ts";

/** A due row, as it was re-read from the team's table. */
export interface Candidate {
  readonly due: DueRow;
  readonly row: IntentRow;
}

/** What refreshing needs. */
export interface RefreshDeps {
  readonly pool: Db;
  readonly stripe: StripeSide;
  readonly rules: ProofRules;
  readonly touchKnown: boolean;
}

/** An object that was read this recently is as fresh as a look-up would make it. */
const FRESH_MS = 2_000;

/** What was seen of one scope in this pass. */
export interface Refreshed {
  /** Looks at the provider ids that rows store, by intent. */
  readonly looks: ReadonlyMap<string, LastLook>;
  /** Look-ups made. */
  readonly lookups: number;
}

/** The time of a row's attempts, from the row as it was re-read. */
export function attemptsOf(row: IntentRow, rules: ProofRules): Range {
  const { createdAt, updatedAt } = row;
  return attemptRange({ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) }, rules);
}

/** Makes sure of coverage for all rows at once. Throws UnreadableError. */
export async function coverCandidates(
  deps: RefreshDeps,
  input: {
    readonly scope: string;
    readonly candidates: readonly Candidate[];
    readonly signal?: AbortSignal;
  },
): Promise<void> {
  const ranges = input.candidates.map(({ row }) => attemptsOf(row, deps.rules));
  for (const range of mergeRanges(ranges)) {
    await deps.stripe.ensureCoverage({
      scope: input.scope,
      ...range,
      ...(input.signal === undefined ? {} : { signal: input.signal }),
    });
  }
}

/** Looks up the rows' own objects that may have moved on; each id once. Throws UnreadableError. */
export async function refreshOwnObjects(
  deps: RefreshDeps,
  input: {
    readonly scope: string;
    readonly candidates: readonly Candidate[];
    readonly now: Date;
  },
): Promise<Refreshed> {
  const { scope, now } = input;
  const answers = new Map<string, { readonly found: boolean; readonly lookedAt: Date }>();
  const looks = new Map<string, LastLook>();
  const look = async (id: string): Promise<{ found: boolean; lookedAt: Date }> => {
    const answer = answers.get(id) ?? (await deps.stripe.look(scope, id));
    answers.set(id, answer);
    return answer;
  };
  for (const { row, due } of input.candidates) {
    const intent = await readOpenIntent(deps.pool, asked(deps, row));
    if (intent === null) continue;
    const payments = await readOwnPayments(deps.pool, intent, deps.rules);
    const charges = await readOwnCharges(deps.pool, intent.intentId);
    const since = due.nextAt < now ? due.nextAt : now;
    const ids = staleIds({ payments, charges, freshFrom: new Date(since.getTime() - FRESH_MS) });
    for (const id of ids) if (deps.stripe.isReadable(id)) await look(id);
    const stored = unseenId(intent, payments, charges);
    if (stored === null || !deps.stripe.isReadable(stored)) continue;
    const { found, lookedAt } = await look(stored);
    looks.set(intent.intentId, { kind: "id", id: stored, found, at: lookedAt });
  }
  return { looks, lookups: answers.size };
}

function asked(deps: RefreshDeps, row: IntentRow): { intentId: string; touchKnown: boolean } {
  return { intentId: row.intentId, touchKnown: deps.touchKnown };
}

/** Ids of own objects that are not final and were last read before `freshFrom`. */
function staleIds(input: {
  readonly payments: readonly OwnPayment[];
  readonly charges: readonly OwnCharge[];
  readonly freshFrom: Date;
}): string[] {
  const { payments, charges, freshFrom } = input;
  const paid = new Set(
    charges.filter((charge) => charge.succeeded).map((charge) => charge.paymentIntent),
  );
  const stale = payments.filter((payment) => {
    if (payment.status === "canceled") return false;
    // A success whose charge is not shown yet is asked for each time (case B23).
    if (payment.status === "succeeded") return !paid.has(payment.id);
    return payment.seenAt < freshFrom;
  });
  const loose = charges.filter(
    (charge) =>
      charge.status === "pending" &&
      !payments.some((payment) => payment.id === charge.paymentIntent),
  );
  return [...stale.map((payment) => payment.id), ...loose.map((charge) => charge.chargeId)];
}

/** The provider id that the row stores and the mirror does not know; `null`: there is none. */
function unseenId(
  intent: OpenIntent,
  payments: readonly OwnPayment[],
  charges: readonly OwnCharge[],
): string | null {
  const id = intent.chargeId;
  if (id === null) return null;
  const known =
    payments.some((payment) => payment.id === id) ||
    charges.some((charge) => charge.chargeId === id || charge.paymentIntent === id);
  return known ? null : id;
}
