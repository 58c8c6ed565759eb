/** Makes the rows and payments of one story, with ids, keys and amounts of its own. */
import { createHash } from "node:crypto";

import type { Random } from "./random.ts";
import type { Setup, SimCharge, SimPayment, SimRow, Story } from "./world.ts";
import { DAY, HOUR, MINUTE } from "./world.ts";

/** How the writer of a world marks what it sends to Stripe. */
export interface Writer {
  readonly account: string;
  readonly scope: string;
  /** Another account of the same scope, where there is one. */
  readonly neighbour: string | null;
  /** Does it put the row's id into the metadata? */
  readonly marksIntents: boolean;
  /** Do events get lost on the way? */
  readonly lossy: boolean;
}

export interface Maker {
  readonly rng: Random;
  readonly setup: Setup;
  readonly writer: Writer;
  readonly amount: number;
  readonly currency: string;
  readonly customer: string;
  readonly reference: string;
  /** Age of the story's beginning, in seconds. */
  readonly age: number;
  /** A row that was paid as meant, unless `fields` say otherwise. */
  readonly row: (fields?: Partial<SimRow>) => SimRow;
  /** A payment that succeeded for the row, unless `fields` say otherwise. */
  readonly payment: (row: SimRow | null, fields?: Partial<SimPayment>) => SimPayment;
  readonly charge: (fields?: Partial<SimCharge>) => SimCharge;
  /** A fresh id with this beginning. */
  readonly id: (kind: string) => string;
}

export type StoryTeller = (make: Maker) => Omit<Story, "name">;

// Ages stay minutes away from every limit (2m, 6m, 7m, 10m, 24h, 14d): a run takes a while.
export function anAge(rng: Random): number {
  return rng.pick([
    () => rng.int(20 * MINUTE, 3 * HOUR),
    () => rng.int(5 * HOUR, 22 * HOUR),
    () => rng.int(27 * HOUR, 60 * HOUR),
    () => rng.int(3 * DAY, 12 * DAY),
  ])();
}

const CURRENCIES = ["usd", "eur", "gbp"] as const;
// The row is minted, then the call is made, then the answer is written.
const CALL_AFTER = 5;
const ANSWER_AFTER = 20;

/** `index` is the story's number in its world and makes its amounts its own. */
export function maker(input: {
  readonly rng: Random;
  readonly setup: Setup;
  readonly writer: Writer;
  readonly prefix: string;
  readonly index: number;
}): Maker {
  const { rng, setup, writer, index } = input;
  const prefix = `${input.prefix}s${String(index)}`;
  let count = 0;
  const id = (kind: string): string => {
    count += 1;
    return `${kind}_${prefix}n${String(count)}`;
  };
  const base = {
    rng,
    setup,
    writer,
    id,
    amount: rng.int(1, 9) * 100_000 + (index + 1) * 1_000 + rng.int(1, 9) * 10,
    currency: rng.pick(CURRENCIES),
    customer: `cus_${prefix}`,
    reference: `order-${prefix}`,
    age: anAge(rng),
  };
  const charge: Maker["charge"] = (fields = {}) => ({
    id: id("ch"),
    status: "succeeded",
    captured: base.amount,
    age: base.age - CALL_AFTER,
    refunds: [],
    disputes: [],
    ...fields,
  });
  return {
    ...base,
    charge,
    row: (fields = {}) => makeRow(base, fields),
    payment: (row, fields = {}) => makePayment({ ...base, charge }, row, fields),
  };
}

type Base = Omit<Maker, "row" | "payment" | "charge">;

function makeRow(base: Base, fields: Partial<SimRow>): SimRow {
  const createdAge = fields.createdAge ?? base.age;
  const id = base.id("int");
  return {
    id,
    account: base.writer.account,
    scope: base.writer.scope,
    kind: "charge",
    amount: base.amount,
    currency: base.currency,
    key: `key-${id}`,
    state: "recorded",
    chargeId: null,
    reference: base.reference,
    paymentId: null,
    customer: base.rng.chance(0.5) ? base.customer : null,
    fingerprint: null,
    repeatConfirmed: false,
    amountAtFirst: null,
    createdAge,
    updatedAge: createdAge - ANSWER_AFTER,
    ...fields,
  };
}

function makePayment(
  base: Base & Pick<Maker, "charge">,
  row: SimRow | null,
  fields: Partial<SimPayment>,
): SimPayment {
  const age = fields.age ?? (row?.createdAge ?? base.age) - CALL_AFTER;
  const amount = fields.amount ?? base.amount;
  return {
    id: base.id("pi"),
    scope: base.writer.scope,
    amount,
    currency: base.currency,
    status: "succeeded",
    customer: base.customer,
    description: null,
    invoice: null,
    metadata: {
      ...(base.setup.owned ? { app: "shop" } : {}),
      ...(row !== null && base.writer.marksIntents ? { intent_id: row.id } : {}),
      ...(row === null || row.reference === null ? {} : { order: row.reference }),
    },
    key: row?.key ?? `key-${base.id("loose")}`,
    age,
    charges: fields.charges ?? [base.charge({ captured: amount, age })],
    lossy: base.writer.lossy && base.rng.chance(0.5),
    ...fields,
  };
}

/** The seed's own fingerprint of a row (`json.dumps` with sorted keys). */
export function seedFingerprint(row: Pick<SimRow, "id" | "amount" | "currency">): string {
  const { amount, currency, id } = row;
  const text = `{"amount": ${String(amount)}, "currency": "${currency}", "intent_id": "${id}"}`;
  return createHash("sha256").update(text).digest("hex");
}

/** The row as its writer left it after the answer of `payment`. */
export function answered(row: SimRow, payment: SimPayment, spelledAs: "ch" | "pi" = "ch"): SimRow {
  const last = payment.charges.at(-1);
  return { ...row, chargeId: spelledAs === "pi" || last === undefined ? payment.id : last.id };
}
