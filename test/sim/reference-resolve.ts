/** The rules of resolving, told naively: what becomes of each open row. */
import type { Attempt, Matching, Operation } from "./reference-match.ts";
import { movedOf, netOf } from "./reference-match.ts";
import type { Setup, SimPayment, SimRow, World } from "./world.ts";
import { DAY, MINUTE, paymentsOf } from "./world.ts";

export const IN_FLIGHT_LIMIT = 10 * MINUTE;
export const RETRY_HORIZON = DAY;
const ATTEMPT_WINDOW = 6 * MINUTE;
const SAFETY_LAG = MINUTE;
const CLOCK_SLACK = 5 * MINUTE;

export type Verdict =
  | { readonly kind: "none" }
  | { readonly kind: "record"; readonly chargeId: string }
  | { readonly kind: "fail"; readonly to: "failed_retryable" | "failed_terminal" }
  /** Something is known that forbids a write; a person is told of it. */
  | { readonly kind: "hold" }
  | { readonly kind: "wait" }
  | { readonly kind: "unproven" };

/** The verdict about every row that is a candidate. */
export function verdicts(
  world: World,
  matching: Matching,
  keyless: ReadonlySet<string>,
): Map<string, Verdict> {
  const found = new Map<string, Verdict>();
  for (const operation of matching.operations) {
    for (const row of operation.rows) {
      if (!isCandidate(row, ownPayments(row, matching, operation))) continue;
      found.set(row.id, verdictOn(row, { world, matching, keyless, operation }));
    }
  }
  return found;
}

function isCandidate(row: SimRow, own: readonly SimPayment[]): boolean {
  if (row.state === "reconciling") return true;
  if (row.state === "in_flight") return row.updatedAge > IN_FLIGHT_LIMIT;
  if (row.state !== "failed_retryable" && row.state !== "key_minted") return false;
  return movedOf(own).length > 0;
}

interface Known {
  readonly world: World;
  readonly matching: Matching;
  readonly keyless: ReadonlySet<string>;
  readonly operation: Operation;
}

/** The payments that are a row's own, by a mark or as the only one of its order. */
export function ownPayments(row: SimRow, matching: Matching, operation: Operation): SimPayment[] {
  const marked = operation.payments.filter((one) => matching.rowOf.get(one.id)?.id === row.id);
  if (marked.length > 0) return marked;
  const free = operation.payments.filter((one) => matching.rowOf.get(one.id) === undefined);
  const needy = operation.rows.filter(
    (one) => !operation.payments.some((payment) => matching.rowOf.get(payment.id)?.id === one.id),
  );
  return needy.length === 1 ? free : [];
}

function verdictOn(row: SimRow, known: Known): Verdict {
  const { operation, matching } = known;
  const kept = ({ charge }: Attempt): boolean => netOf(charge) > 0;
  const paid = movedOf(operation.payments).filter(kept);
  const own = ownPayments(row, matching, operation);
  // Two successes of which one is the row's, or of which nobody knows whose they are.
  const itsOwn = movedOf(own).some(kept);
  const loose = paid.filter(({ payment }) => !matching.rowOf.has(payment.id));
  if (paid.length > 1 && (itsOwn || loose.length > 1)) return { kind: "hold" };
  if (matching.torn.some(({ rows }) => rows.some((one) => one.id === row.id))) {
    return { kind: "hold" };
  }
  const success = movedOf(own)[0];
  if (success !== undefined) {
    const agrees =
      success.charge.captured === row.amount && success.payment.currency === row.currency;
    return agrees ? { kind: "record", chargeId: success.charge.id } : { kind: "hold" };
  }
  const positiveOnly = row.state !== "reconciling";
  if (own.length > 0) {
    if (own.some((one) => !isFinal(one))) return { kind: "wait" };
    return { kind: "fail", to: "failed_terminal" };
  }
  if (positiveOnly || !absenceIsProven(row, known)) return { kind: "unproven" };
  // Where another row paid the purchase a retry of this one would pay it twice.
  const mayRetry = row.createdAge < RETRY_HORIZON && paid.length === 0;
  return { kind: "fail", to: mayRetry ? "failed_retryable" : "failed_terminal" };
}

function isFinal(payment: SimPayment): boolean {
  if (payment.status === "canceled") return true;
  const last = payment.charges.at(-1);
  return payment.status === "requires_payment_method" && last?.status === "failed";
}

/** Complete lists and no payment in the time of the attempts that might be the row's own. */
function absenceIsProven(row: SimRow, known: Known): boolean {
  const newest = row.updatedAge - ATTEMPT_WINDOW;
  if (newest < SAFETY_LAG) return false;
  const oldest = row.createdAge + CLOCK_SLACK;
  const inTime = (age: number): boolean => age <= oldest && age >= newest;
  return paymentsOf(known.world)
    .filter((one) => one.scope === row.scope)
    .filter((one) => inTime(one.age) || one.charges.some((charge) => inTime(charge.age)))
    .every((one) => one.metadata["intent_id"] !== undefined || hasWritersKey(one, known.keyless));
}

/** A key that an SDK made up names an attempt and nothing else. */
function hasWritersKey(payment: SimPayment, keyless: ReadonlySet<string>): boolean {
  const { id, key } = payment;
  return key !== "" && !key.startsWith("stripe-node-retry-") && !keyless.has(id);
}

/** The rows as they stand after the resolver has written. */
export function afterResolving(
  world: World,
  found: ReadonlyMap<string, Verdict>,
  setup: Setup,
): World {
  if (setup.resolve !== "write") return world;
  const settled = (row: SimRow): SimRow => {
    const verdict = found.get(row.id);
    if (verdict?.kind === "record") {
      return { ...row, state: "recorded", chargeId: verdict.chargeId };
    }
    return verdict?.kind === "fail" ? { ...row, state: verdict.to } : row;
  };
  const stories = world.stories.map((story) => ({ ...story, rows: story.rows.map(settled) }));
  return { ...world, stories };
}
