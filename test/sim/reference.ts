/**
 * The rules of detection, told naively over plain objects, from the contract's words. Slow and
 * obvious on purpose: what it says must be plain to read, since it judges the product.
 */
import { foldExpected } from "./reference-fold.ts";
import type { Matching, Operation } from "./reference-match.ts";
import { match, movedOf, netOf, notes, returnedOf } from "./reference-match.ts";
import {
  afterResolving,
  IN_FLIGHT_LIMIT,
  ownPayments,
  RETRY_HORIZON,
  verdicts,
} from "./reference-resolve.ts";
import type { Verdict } from "./reference-resolve.ts";
import type { Setup, SimCharge, SimPayment, SimRow, World } from "./world.ts";
import { DAY, MINUTE, paymentsOf, rowsOf } from "./world.ts";

const ORPHAN_GRACE = 2 * MINUTE;
const SIMILAR_WINDOW = 10 * MINUTE;
const DUPLICATE_WINDOW = DAY;
const ASYNC_LIMIT = 14 * DAY;
const LADDER_END = DAY;
const REFUND_PATIENCE = 3 * DAY;

/** A finding as far as the contract fixes it; `null` where it fixes nothing. */
export interface Expected {
  readonly code: string;
  readonly basis: string | null;
  readonly severity: string | null;
  readonly intents: readonly string[];
  readonly charges: readonly string[] | null;
  readonly amountAtRisk: number | null;
}

export interface Judgement {
  readonly findings: readonly Expected[];
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** The team's rows in the end. */
  readonly rows: readonly SimRow[];
}

interface Known {
  readonly world: World;
  readonly matching: Matching;
  readonly setup: Setup;
  readonly verdicts: ReadonlyMap<string, Verdict>;
}

/** Everything the contract says about a world. */
export function judge(world: World, setup: Setup, keyless: ReadonlySet<string>): Judgement {
  const before = match(world, keyless);
  const found = verdicts(world, before, keyless);
  const after = afterResolving(world, found, setup);
  const known = { world: after, matching: match(after, keyless), setup, verdicts: found };
  const findings = [
    ...doubles(known),
    ...orphans(known),
    ...sharedCharges(known),
    ...conflicts(known),
    ...stuck(known),
    ...drifts(known),
    ...mismatches(known),
    ...horizons(known),
    ...keyReuses(known),
    ...refundDrifts(known),
    ...disputes(known),
  ];
  const folded = foldExpected(findings, known.matching);
  return { findings: folded, verdicts: found, rows: rowsOf(after) };
}

function paidOf(operation: Operation): ReturnType<typeof movedOf> {
  return movedOf(operation.payments).filter(
    ({ charge, payment }) => netOf(charge) > 0 && payment.invoice === null,
  );
}

// ---------------------------------------------------------------- double charges

function doubles(known: Known): Expected[] {
  const proven = known.matching.operations.flatMap((operation) => provenDouble(operation, known));
  return [...proven, ...similarDoubles(known)];
}

function provenDouble(operation: Operation, known: Known): Expected[] {
  const paid = paidOf(operation).filter(({ payment }) => !isRepeat(payment, known));
  if (paid.length < 2 || !isOurs(paid[0]!.payment, known)) return [];
  const rows = operation.rows.filter((row) => row.kind === "charge");
  return [
    {
      code: "double_charge",
      basis: basisOf(paid, rows, known),
      severity: "critical",
      intents: rows.map((row) => row.id),
      charges: paid.map(({ charge }) => charge.id),
      amountAtRisk: paid.slice(1).reduce((sum, { charge }) => sum + netOf(charge), 0),
    },
  ];
}

/** Did a person mean it, although it is the second one? */
function isRepeat(payment: SimPayment, known: Known): boolean {
  return known.matching.rowOf.get(payment.id)?.repeatConfirmed === true;
}

function basisOf(
  paid: ReturnType<typeof movedOf>,
  rows: readonly SimRow[],
  known: Known,
): string | null {
  const owners = paid.map(({ payment }) => known.matching.rowOf.get(payment.id)?.id ?? null);
  if (new Set(owners).size === 1 && owners[0] !== null) {
    const keys = new Set(paid.map(({ payment }) => payment.key));
    const span = paid[0]!.charge.age - paid.at(-1)!.charge.age;
    return keys.size === 1 && span > RETRY_HORIZON ? "key" : "intent";
  }
  return rows.length > 0 && rows.every((row) => row.reference === null)
    ? "payment_id"
    : "reference";
}

interface Single {
  readonly payment: SimPayment;
  readonly charge: SimCharge;
  readonly row: SimRow | null;
}

/** Purchases paid once that look like one another: one finding for all that hang together. */
function similarDoubles(known: Known): Expected[] {
  const singles = known.matching.operations
    .flatMap((operation): Single[] => {
      const paid = paidOf(operation);
      if (paid.length !== 1) return [];
      const { payment, charge } = paid[0]!;
      return [
        { payment, charge, row: known.matching.rowOf.get(payment.id) ?? operation.rows[0] ?? null },
      ];
    })
    .filter((one) => isOurs(one.payment, known) && one.row?.repeatConfirmed !== true)
    .sort((a, b) => b.charge.age - a.charge.age);
  const groups: Single[][] = [];
  for (const single of singles) {
    const group = groups.find((one) => one.some((member) => alike(member, single)));
    if (group === undefined) groups.push([single]);
    else group.push(single);
  }
  return groups
    .filter((group) => group.length > 1)
    .map((group) => ({
      code: "double_charge",
      basis: "similar",
      // The severity rises with the count, and the contract leaves open when.
      severity: group.length === 2 ? "warning" : null,
      intents: group.flatMap(({ row }) => (row === null ? [] : [row.id])),
      charges: group.map(({ charge }) => charge.id),
      amountAtRisk: group.slice(1).reduce((sum, { charge }) => sum + netOf(charge), 0),
    }));
}

function alike(a: Single, b: Single): boolean {
  const references = [a, b].map((one) => one.row?.reference ?? one.payment.metadata["order"]);
  if (references.every((one) => one !== undefined) && references[0] !== references[1]) return false;
  const gap = Math.abs(a.charge.age - b.charge.age);
  const print = a.row?.fingerprint ?? null;
  const samePrint = print !== null && print === b.row?.fingerprint;
  const looks =
    a.payment.scope === b.payment.scope &&
    a.payment.customer !== null &&
    a.payment.customer === b.payment.customer &&
    a.payment.currency === b.payment.currency &&
    a.charge.captured === b.charge.captured &&
    a.payment.description === b.payment.description;
  return looks && gap <= (samePrint ? DUPLICATE_WINDOW : SIMILAR_WINDOW);
}

// ---------------------------------------------------------------- orphans

function owned(payment: SimPayment, setup: Setup): "yes" | "no" | "unknown" {
  if (!setup.owned) return "yes";
  if (Object.keys(payment.metadata).length === 0) return "unknown";
  return payment.metadata["app"] === "shop" ? "yes" : "no";
}

function isOurs(payment: SimPayment, known: Known): boolean {
  return known.matching.rowOf.has(payment.id) || owned(payment, known.setup) !== "no";
}

function orphans(known: Known): Expected[] {
  const covered = new Set(doubles(known).flatMap((one) => one.charges ?? []));
  return known.matching.operations
    .filter((operation) => operation.rows.length === 0)
    .flatMap((operation) => paidOf(operation))
    .filter(({ charge, payment }) => {
      const ours = owned(payment, known.setup) !== "no";
      return ours && charge.age > ORPHAN_GRACE && !covered.has(charge.id);
    })
    .map(({ charge, payment }) => ({
      code: "orphan_charge",
      basis: null,
      severity: orphanSeverity(payment, known.setup),
      intents: [],
      charges: [charge.id],
      amountAtRisk: netOf(charge),
    }));
}

function orphanSeverity(payment: SimPayment, setup: Setup): string {
  if (owned(payment, setup) === "unknown") return "info";
  return payment.metadata["intent_id"] === undefined ? "warning" : "critical";
}

// ---------------------------------------------------------------- rows against rows

function sharedCharges(known: Known): Expected[] {
  return paymentsOf(known.world).flatMap((payment) => {
    const rows = rowsOf(known.world).filter((row) => notes(row, payment));
    if (rows.length < 2) return [];
    const charges = movedOf([payment]).map(({ charge }) => charge.id);
    return [
      {
        code: "duplicate_charge_id",
        basis: null,
        severity: "critical",
        intents: rows.map((row) => row.id),
        charges,
        amountAtRisk: null,
      },
    ];
  });
}

function conflicts(known: Known): Expected[] {
  const rows = rowsOf(known.world).filter((row) => row.kind === "charge");
  const changed = rows
    .filter((row) => row.amountAtFirst !== null && row.amountAtFirst !== row.amount)
    .map((row) => conflict([row]));
  const sets = new Map<string, SimRow[]>();
  for (const row of rows) {
    const names = [`key ${row.scope} ${row.account} ${row.key}`];
    if (row.paymentId !== null) names.push(`payment id ${row.scope} ${row.paymentId}`);
    for (const name of names) sets.set(name, [...(sets.get(name) ?? []), row]);
  }
  const torn = [...sets.values()]
    .filter((set) => new Set(set.map((row) => `${String(row.amount)} ${row.currency}`)).size > 1)
    .map((set) => conflict(set));
  return [...changed, ...torn];
}

function conflict(rows: readonly SimRow[]): Expected {
  return {
    code: "fingerprint_conflict",
    basis: null,
    severity: "critical",
    intents: rows.map((row) => row.id),
    charges: null,
    amountAtRisk: null,
  };
}

function keyReuses(known: Known): Expected[] {
  const byKey = new Map<string, SimRow[]>();
  for (const row of rowsOf(known.world)) {
    const name = `${row.scope} ${row.key}`;
    byKey.set(name, [...(byKey.get(name) ?? []), row]);
  }
  const shared = [...byKey.values()].filter(
    (rows) => new Set(rows.map((row) => `${row.account} ${row.kind}`)).size > 1,
  );
  const torn = known.matching.torn.map(({ rows }) => rows);
  return [...shared, ...torn].map((rows) => ({
    code: "key_reuse",
    basis: null,
    severity: "warning",
    intents: rows.map((row) => row.id),
    charges: null,
    amountAtRisk: null,
  }));
}

// ---------------------------------------------------------------- rows against Stripe

/** Rows with the payments that are their own. */
function pairs(known: Known): { row: SimRow; own: SimPayment[]; operation: Operation }[] {
  return known.matching.operations.flatMap((operation) =>
    operation.rows.map((row) => ({
      row,
      own: ownPayments(row, known.matching, operation),
      operation,
    })),
  );
}

function stuck(known: Known): Expected[] {
  return pairs(known).flatMap(({ row, own, operation }): Expected[] => {
    const base = { basis: null, intents: [row.id], charges: [], amountAtRisk: null };
    // What a success of its own forbids to write is told under its own name.
    if (movedOf(own).length > 0) return [];
    // So is a purchase that was paid twice, and nobody knows for which row.
    const loose = paidOf(operation).filter(
      ({ payment }) => !known.matching.rowOf.has(payment.id) && !own.includes(payment),
    );
    if (loose.length > 1) return [];
    const slow = own.some((payment) => payment.status === "processing");
    if (row.state === "in_flight") {
      const limit = slow ? ASYNC_LIMIT : IN_FLIGHT_LIMIT;
      if (row.updatedAge <= limit) return [];
      return [{ ...base, code: "stuck_in_flight", severity: null }];
    }
    // Without a resolver there is no ladder that could end.
    if (row.state !== "reconciling" || known.setup.resolve === "off") return [];
    if (row.updatedAge <= LADDER_END) return [];
    const open = known.verdicts.get(row.id)?.kind === "wait" && row.updatedAge <= ASYNC_LIMIT;
    return open ? [] : [{ ...base, code: "stuck_reconciling", severity: "critical" }];
  });
}

function drifts(known: Known): Expected[] {
  return pairs(known).flatMap(({ row, own }): Expected[] => {
    const base = { code: "state_drift", basis: null, intents: [row.id] };
    const success = movedOf(own).find(({ charge }) => netOf(charge) > 0);
    const failed = ["failed_terminal", "failed_retryable", "key_minted"].includes(row.state);
    // Nobody writes what is proven about an open row: a person is told instead.
    const unwritten =
      known.setup.resolve !== "write" && known.verdicts.get(row.id)?.kind === "record";
    if ((failed || unwritten) && success !== undefined) {
      const amountAtRisk = netOf(success.charge);
      return [{ ...base, severity: "critical", charges: [success.charge.id], amountAtRisk }];
    }
    if (row.state === "failed_terminal") {
      const held = own.find((payment) => payment.status === "requires_capture");
      if (held === undefined) return [];
      return [{ ...base, severity: null, charges: null, amountAtRisk: null }];
    }
    if (row.state !== "recorded" || movedOf(own).length > 0) return [];
    if (own.some((payment) => ["processing", "requires_capture"].includes(payment.status)))
      return [];
    const exists = paymentsOf(known.world).some((payment) => notes(row, payment));
    if (own.length === 0 && (row.chargeId === null || exists)) return [];
    return [{ ...base, severity: null, charges: null, amountAtRisk: null }];
  });
}

function mismatches(known: Known): Expected[] {
  return pairs(known).flatMap(({ row, own }) =>
    movedOf(own).flatMap(({ charge, payment }) => {
      const whole = row.amount === payment.amount && row.currency === payment.currency;
      const partial = whole && charge.captured < row.amount;
      if (whole && !partial) return [];
      return [
        {
          code: "amount_mismatch",
          basis: null,
          severity: partial ? "info" : "critical",
          intents: [row.id],
          charges: [charge.id],
          amountAtRisk: null,
        },
      ];
    }),
  );
}

function horizons(known: Known): Expected[] {
  return (
    pairs(known)
      .filter(({ row }) => row.state === "key_minted" || row.state === "failed_retryable")
      // Of a row that was charged already the drift tells, and says the same about a retry.
      .filter(({ row, own }) => row.createdAge > RETRY_HORIZON && movedOf(own).length === 0)
      .map(({ row }) => ({
        code: "retry_horizon_exceeded",
        basis: null,
        severity: "warning",
        intents: [row.id],
        charges: [],
        amountAtRisk: null,
      }))
  );
}

// ---------------------------------------------------------------- what came back

function refundDrifts(known: Known): Expected[] {
  return [...returnedTooMuch(known), ...brokenRefunds(known)];
}

/** Refunds that failed while money is left, and refunds that nobody answers. */
function brokenRefunds(known: Known): Expected[] {
  const all = paymentsOf(known.world).flatMap((payment) =>
    movedOf([payment]).filter(() => isOurs(payment, known)),
  );
  return all.flatMap(({ charge, payment }) => {
    const has = (...names: string[]): boolean =>
      charge.refunds.some((refund) => names.includes(refund.status));
    const base = {
      code: "refund_drift",
      basis: null,
      intents: ownersOf(payment, known),
      charges: [charge.id],
      amountAtRisk: null,
    };
    const failed = has("failed", "undone") && netOf(charge) > 0;
    const waits = charge.refunds.some(
      (refund) => refund.status === "pending" && refund.age >= REFUND_PATIENCE,
    );
    return [
      ...(failed ? [{ ...base, severity: "critical" }] : []),
      ...(waits ? [{ ...base, severity: "info" }] : []),
    ];
  });
}

function returnedTooMuch(known: Known): Expected[] {
  return paymentsOf(known.world).flatMap((payment) =>
    payment.charges
      .filter((charge) => returnedOf(charge) > charge.captured)
      .map((charge) => ({
        code: "refund_drift",
        basis: null,
        severity: "critical",
        intents: ownersOf(payment, known),
        charges: [charge.id],
        amountAtRisk: returnedOf(charge) - charge.captured,
      })),
  );
}

function disputes(known: Known): Expected[] {
  return paymentsOf(known.world).flatMap((payment) =>
    payment.charges.flatMap((charge) =>
      charge.disputes
        .filter((dispute) => dispute.status !== "won")
        .map((dispute) => ({
          code: "dispute_opened",
          basis: null,
          severity: dispute.status.startsWith("warning_") ? "info" : "critical",
          intents: ownersOf(payment, known),
          charges: [charge.id],
          amountAtRisk: dispute.amount,
        })),
    ),
  );
}

function ownersOf(payment: SimPayment, known: Known): string[] {
  const row = known.matching.rowOf.get(payment.id);
  return row === undefined ? [] : [row.id];
}
