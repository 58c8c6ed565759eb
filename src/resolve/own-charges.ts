/** The charges of a row, on any rail. */
import { readNamedSql, runNamed } from "../store/named-sql.ts";
import { toBigint } from "../store/pool.ts";
import type { Db } from "../store/pool.ts";
import type { OwnCharge } from "./situation.ts";

const ownChargesSql = readNamedSql("resolve/own_charges.sql");

/** A charge as sql/resolve answers it. */
export interface ChargeRecord {
  readonly charge_id: string;
  readonly payment_intent: string | null;
  readonly status: "pending" | "succeeded" | "failed";
  readonly succeeded: boolean;
  readonly captured: boolean;
  readonly mirrored: boolean;
  readonly amount: string;
  readonly amount_captured: string;
  readonly net: string;
  readonly currency: string;
  readonly payee: string | null;
  readonly asset: string | null;
  readonly failure_code: string | null;
  readonly basis: string;
  readonly torn: boolean;
  readonly created_at: Date;
}

/** The charges of a row, oldest first. */
export async function readOwnCharges(db: Db, intentId: string): Promise<OwnCharge[]> {
  const rows = await runNamed<ChargeRecord>(db, ownChargesSql, { intent: intentId });
  return rows.map(ownCharge);
}

/** A charge as SQL gives it. */
export function ownCharge(row: ChargeRecord): OwnCharge {
  return {
    chargeId: row.charge_id,
    paymentIntent: row.payment_intent,
    status: row.status,
    succeeded: row.succeeded,
    captured: row.captured,
    mirrored: row.mirrored,
    amount: toBigint(row.amount),
    amountCaptured: toBigint(row.amount_captured),
    net: toBigint(row.net),
    currency: row.currency,
    payee: row.payee,
    asset: row.asset,
    failureCode: row.failure_code,
    basis: row.basis,
    torn: row.torn,
    createdAt: row.created_at,
  };
}
