/**
 * The rules of matching, told naively: loops over plain objects, written from the contract's words
 * and not from the product's code. Which row a charge belongs to, and which operation.
 */
import type { SimCharge, SimPayment, SimRow, World } from "./world.ts";
import { paymentsOf, rowsOf } from "./world.ts";

/** An attempt with the payment around it. */
export interface Attempt {
  readonly charge: SimCharge;
  readonly payment: SimPayment;
}

/** All rows and payments of one purchase. */
export interface Operation {
  readonly name: string;
  readonly rows: SimRow[];
  readonly payments: SimPayment[];
}

export interface Matching {
  readonly operations: readonly Operation[];
  /** The row a payment belongs to by a mark of its own (not by the order number). */
  readonly rowOf: ReadonlyMap<string, SimRow>;
  /** Payments whose marks name different rows, with those rows. */
  readonly torn: readonly { readonly payment: SimPayment; readonly rows: readonly SimRow[] }[];
}

/** Is money there: paid, captured, and how much has not gone back. */
export function netOf(charge: SimCharge): number {
  if (charge.status !== "succeeded") return 0;
  return charge.captured - returnedOf(charge);
}

/** What went back for good: succeeded refunds and lost disputes. */
export function returnedOf(charge: SimCharge): number {
  const refunds = charge.refunds.filter((refund) => refund.status === "succeeded");
  const lost = charge.disputes.filter((dispute) => dispute.status === "lost");
  return [...refunds, ...lost].reduce((sum, one) => sum + one.amount, 0);
}

/** A charge that moved money, whether or not it went back later. */
export function moved(charge: SimCharge): boolean {
  return charge.status === "succeeded" && charge.captured > 0;
}

/** Attempts that moved money, oldest first. */
export function movedOf(payments: readonly SimPayment[]): Attempt[] {
  return payments
    .flatMap((payment) => payment.charges.map((charge) => ({ charge, payment })))
    .filter(({ charge }) => moved(charge))
    .sort((a, b) => b.charge.age - a.charge.age || (a.charge.id < b.charge.id ? -1 : 1));
}

/** Does the row note this payment, in any spelling? */
export function notes(row: SimRow, payment: SimPayment): boolean {
  if (row.kind !== "charge" || row.scope !== payment.scope || row.chargeId === null) return false;
  return [payment.id, ...payment.charges.map((charge) => charge.id)].includes(row.chargeId);
}

/** Matches a world; `keyless`: payments whose key nobody saw. */
export function match(world: World, keyless: ReadonlySet<string>): Matching {
  const rows = rowsOf(world).filter((row) => row.kind === "charge");
  const rowOf = new Map<string, SimRow>();
  const torn: { payment: SimPayment; rows: SimRow[] }[] = [];
  for (const payment of paymentsOf(world)) {
    const near = rows.filter((row) => row.scope === payment.scope);
    const byKey =
      keyless.has(payment.id) || payment.key === ""
        ? []
        : near.filter((row) => row.key === payment.key);
    const marked = [
      near.filter((row) => notes(row, payment)),
      // A key that accounts share says nothing about which of them it was.
      byKey.length === 1 ? byKey : [],
      near.filter((row) => payment.metadata["intent_id"] === row.id),
    ];
    const [best] = marked.flat();
    if (best === undefined) continue;
    rowOf.set(payment.id, best);
    const named = [...new Set(marked.flatMap((one) => (one[0] === undefined ? [] : [one[0]])))];
    if (named.length > 1) torn.push({ payment, rows: named });
  }
  return { operations: operationsOf(rows, paymentsOf(world), rowOf), rowOf, torn };
}

function operationsOf(
  rows: readonly SimRow[],
  payments: readonly SimPayment[],
  rowOf: ReadonlyMap<string, SimRow>,
): Operation[] {
  const operations = new Map<string, Operation>();
  const at = (name: string): Operation => {
    const known = operations.get(name) ?? { name, rows: [], payments: [] };
    operations.set(name, known);
    return known;
  };
  for (const row of rows) at(operationOfRow(row)).rows.push(row);
  for (const payment of payments) {
    const row = rowOf.get(payment.id);
    if (row !== undefined) {
      at(operationOfRow(row)).payments.push(payment);
      continue;
    }
    const reference = payment.metadata["order"];
    // An order number counts inside one account; without a row it is that of the only user.
    const user = rows.find((one) => one.scope === payment.scope && one.reference === reference);
    if (reference === undefined) at(`payment ${payment.id}`).payments.push(payment);
    else if (user !== undefined) at(operationOfRow(user)).payments.push(payment);
    else at(`reference ${payment.scope} ${reference}`).payments.push(payment);
  }
  return [...operations.values()];
}

function operationOfRow(row: SimRow): string {
  if (row.reference !== null) return `order ${row.scope} ${row.account} ${row.reference}`;
  if (row.paymentId !== null) return `payment id ${row.scope} ${row.paymentId}`;
  return `row ${row.id}`;
}
