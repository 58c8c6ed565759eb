/**
 * Which payment a transfer in the other direction gives back. On chain a refund names nothing: the
 * payee simply sends money to the payer. What it most likely settles is, in this order, the
 * purchase that a refund row of the team names, a purchase that was paid twice, and a payment of
 * exactly the same amount; the newest first, since the later charge is the excess (case B36).
 */

/** A payment between two addresses; `amount` in the token's smallest unit. */
export interface PaidTransfer {
  readonly chargeId: string;
  readonly operationId: string | null;
  readonly amount: bigint;
  readonly at: Date;
  /** Order among payments of one second. */
  readonly position: bigint;
}

/** A transfer in the other direction. */
export interface BackTransfer {
  readonly refundId: string;
  readonly amount: bigint;
  readonly at: Date;
  /** Operations whose refund rows name this transfer. */
  readonly named: readonly string[];
}

/** What a refund settles, and why that one. */
export interface Allocation {
  readonly refundId: string;
  readonly chargeId: string;
  readonly basis: "row" | "double" | "amount" | "payer";
}

interface Open extends PaidTransfer {
  left: bigint;
}

/** Allocates refunds of one pair of addresses, oldest first; one that fits nowhere is left out. */
export function allocateRefunds(
  paid: readonly PaidTransfer[],
  back: readonly BackTransfer[],
): Allocation[] {
  const open: Open[] = paid.map((charge) => ({ ...charge, left: charge.amount }));
  const inOrder = back.toSorted(
    (a, b) => a.at.getTime() - b.at.getTime() || (a.refundId < b.refundId ? -1 : 1),
  );
  return inOrder.flatMap((refund) => {
    const found = settles(refund, open);
    if (found === undefined) return [];
    found.charge.left -= refund.amount;
    return [{ refundId: refund.refundId, chargeId: found.charge.chargeId, basis: found.basis }];
  });
}

function settles(
  refund: BackTransfer,
  open: readonly Open[],
): { readonly charge: Open; readonly basis: Allocation["basis"] } | undefined {
  const fitting = open
    .filter((charge) => charge.at <= refund.at && charge.left >= refund.amount)
    .toSorted((a, b) => b.at.getTime() - a.at.getTime() || Number(b.position - a.position));
  const exact = fitting.filter((charge) => charge.left === refund.amount);
  const isNamed = (charge: Open): boolean =>
    charge.operationId !== null && refund.named.includes(charge.operationId);
  const isTwice = (charge: Open): boolean =>
    charge.operationId !== null &&
    open.filter((one) => one.operationId === charge.operationId && one.left > 0n).length > 1;
  const choices = [
    ["row", exact.find(isNamed) ?? fitting.find(isNamed)],
    ["double", exact.find(isTwice)],
    ["amount", exact[0]],
    ["double", fitting.find(isTwice)],
    ["payer", fitting[0]],
  ] as const;
  const first = choices.find(([, charge]) => charge !== undefined);
  return first?.[1] === undefined ? undefined : { basis: first[0], charge: first[1] };
}
