/** Stories without a plot: rows and payments of one purchase in any combination of states. */
import type { Maker, StoryTeller } from "./maker.ts";
import { answered } from "./maker.ts";
import type { SimPayment, SimRow } from "./world.ts";
import { MINUTE } from "./world.ts";

const STATES = [
  "key_minted",
  "in_flight",
  "recorded",
  "failed_retryable",
  "failed_terminal",
  "reconciling",
] as const;

/** Payments in all the ways they end, or do not. */
function anyEnd(make: Maker, age: number): Partial<SimPayment> {
  const failed = make.charge({ status: "failed", captured: 0, age });
  const refund = {
    id: make.id("re"),
    amount: make.amount,
    status: "succeeded" as const,
    age: age - 12 * MINUTE,
  };
  return make.rng.pick<() => Partial<SimPayment>>([
    () => ({ charges: [make.charge({ age })] }),
    () => ({ charges: [make.charge({ age })] }),
    () => ({ charges: [failed, make.charge({ age: age - 4 })] }),
    () => ({ charges: [make.charge({ age, refunds: [refund] })] }),
    () => ({ status: "requires_payment_method", charges: [failed] }),
    () => ({ status: "canceled", charges: [] }),
    () => ({ status: "requires_action", charges: [] }),
    () => ({
      status: "processing",
      charges: [make.charge({ age, status: "pending", captured: 0 })],
    }),
  ])();
}

/** Each row has a payment or none, and notes it or not, whatever its state says. */
const tangle: StoryTeller = (make) => {
  const rows: SimRow[] = [];
  const payments: SimPayment[] = [];
  const reference = make.rng.chance(0.8) ? make.reference : null;
  const count = make.rng.int(1, 3);
  for (let index = 0; index < count; index += 1) {
    const createdAge = make.age - index * 25;
    const row = make.row({ state: make.rng.pick(STATES), reference, createdAge });
    const paid = make.rng.chance(0.65);
    const payment = paid ? make.payment(row, { ...anyEnd(make, createdAge - 5) }) : null;
    if (payment !== null) payments.push(payment);
    const noted = payment !== null && make.rng.chance(row.state === "recorded" ? 1 : 0.3);
    rows.push(noted ? answered(row, payment, make.rng.pick(["ch", "pi"])) : row);
  }
  return { rows, payments };
};

export const TANGLED_STORIES: Readonly<Record<string, StoryTeller>> = { tangle };
