import type { PoolClient } from "pg";

import { readNamedSql, runNamed } from "../store/named-sql.ts";
import { toBigint } from "../store/pool.ts";
import { allocateRefunds } from "./allocate-refunds.ts";
import type { Allocation, BackTransfer, PaidTransfer } from "./allocate-refunds.ts";

const sql = {
  pairs: readNamedSql("match/transfer_pairs.sql"),
  save: readNamedSql("match/save_refunds.sql"),
};

// Newest transfers of the touched pairs that are allocated anew. A refund settles a payment of the
// last days; a payer with more transfers than this has its older ones placed already.
const TRANSFERS_MAX = 20_000;

interface TransferRow {
  readonly scope: string;
  readonly asset: string;
  readonly payer: string;
  readonly payee: string;
  readonly direction: "paid" | "back";
  readonly id: string;
  readonly operation_id: string | null;
  readonly amount: string;
  readonly at: Date;
  readonly position: bigint;
  readonly named: string[];
}

/**
 * Finds what transfers in the other direction give back, for the pairs of addresses of these
 * charges. Answers the operations whose money changed. Inside the caller's transaction.
 */
export async function placeRefunds(
  tx: PoolClient,
  charges: { readonly scopes: readonly string[]; readonly charge_ids: readonly string[] },
): Promise<readonly { readonly operation_id: string | null }[]> {
  if (!charges.scopes.some((scope) => scope.startsWith("eip155:"))) return [];
  const rows = await runNamed<TransferRow>(tx, sql.pairs, { ...charges, limit: TRANSFERS_MAX });
  const back = rows.filter((row) => row.direction === "back");
  if (back.length === 0) return [];
  const found: (Allocation & { readonly scope: string })[] = [];
  for (const pair of byPair(rows)) {
    const [first] = pair;
    if (first === undefined) continue;
    const allocated = allocateRefunds(pair.flatMap(paidTransfer), pair.flatMap(backTransfer));
    for (const one of allocated) found.push({ ...one, scope: first.scope });
  }
  return runNamed(tx, sql.save, {
    scopes: found.map((one) => one.scope),
    refund_ids: found.map((one) => one.refundId),
    charge_ids: found.map((one) => one.chargeId),
    bases: found.map((one) => one.basis),
    seen_scopes: back.map((row) => row.scope),
    seen_ids: back.map((row) => row.id),
  });
}

function byPair(rows: readonly TransferRow[]): readonly TransferRow[][] {
  const pairs = new Map<string, TransferRow[]>();
  for (const row of rows) {
    const key = [row.scope, row.asset, row.payer, row.payee].join(" ");
    const pair = pairs.get(key) ?? [];
    pair.push(row);
    pairs.set(key, pair);
  }
  return [...pairs.values()];
}

function paidTransfer(row: TransferRow): PaidTransfer[] {
  if (row.direction !== "paid") return [];
  const { id: chargeId, operation_id: operationId, at, position } = row;
  return [{ chargeId, operationId, amount: toBigint(row.amount), at, position }];
}

function backTransfer(row: TransferRow): BackTransfer[] {
  if (row.direction !== "back") return [];
  return [{ refundId: row.id, amount: toBigint(row.amount), at: row.at, named: row.named }];
}
