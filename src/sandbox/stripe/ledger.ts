import type { BalanceTransactionRecord, ChargeRecord, RefundRecord } from "./records.ts";
import type { Space } from "./space.ts";
import type { World } from "./world.ts";

/** Card sales become available two days later in most countries. */
const AVAILABLE_AFTER_SECONDS = 2 * 24 * 60 * 60;
/** The standard fee: 2.9 % and 30 minor units; in per mille so that it stays whole. */
const FEE_PER_MILLE = 29n;
const FEE_FIXED = 30n;
const PER_MILLE = 1_000n;

/** A ledger entry before it has an id. */
export interface LedgerDraft {
  readonly amount: bigint;
  readonly fee: bigint;
  readonly currency: string;
  readonly source: string;
  readonly type: string;
  readonly category: string;
  /** Unix seconds. */
  readonly created: number;
  readonly description?: string | null;
}

/** Writes a ledger entry; entries never change afterwards. */
export function book(world: World, space: Space, draft: LedgerDraft): BalanceTransactionRecord {
  return space.ledger.put(
    {
      id: world.ids.next("txn"),
      object: "balance_transaction",
      created: draft.created,
      livemode: space.livemode,
      metadata: {},
      amount: draft.amount,
      available_on: draft.created + AVAILABLE_AFTER_SECONDS,
      currency: draft.currency,
      description: draft.description ?? null,
      fee: draft.fee,
      reporting_category: draft.category,
      source: draft.source,
      payout: null,
      type: draft.type,
    },
    world.clock.now(),
  );
}

/** Books the captured amount of a charge: `charge` for cards, `payment` for the rest. */
export function bookSale(
  world: World,
  space: Space,
  charge: ChargeRecord,
  created: number,
): BalanceTransactionRecord {
  return book(world, space, {
    amount: charge.amount_captured,
    fee: (charge.amount_captured * FEE_PER_MILLE) / PER_MILLE + FEE_FIXED,
    currency: charge.currency,
    source: charge.id,
    type: charge.id.startsWith("py_") ? "payment" : "charge",
    category: "charge",
    created,
    description: charge.description,
  });
}

/** Books a refund, or with `failed` its return to the balance. */
export function bookRefund(
  world: World,
  space: Space,
  refund: RefundRecord,
  failed: boolean,
): BalanceTransactionRecord {
  const payment = refund.charge.startsWith("py_");
  const type = failed ? "refund_failure" : payment ? "payment_refund" : "refund";
  return book(world, space, {
    amount: failed ? refund.amount : -refund.amount,
    fee: 0n,
    currency: refund.currency,
    source: refund.id,
    type,
    category: failed ? "refund_failure" : "refund",
    created: world.clock.seconds(),
  });
}
