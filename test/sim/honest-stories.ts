/** Stories in which nothing is wrong, however much some of them look like it. */
import { answered, seedFingerprint } from "./maker.ts";
import type { Maker, StoryTeller } from "./maker.ts";
import type { SimPayment, SimRow } from "./world.ts";
import { DAY, HOUR, MINUTE } from "./world.ts";

const SPELLINGS = ["ch", "pi"] as const;

/** A row and its payment, as they should be. */
export function paid(
  make: Maker,
  rowFields: Partial<SimRow> = {},
  fields: Partial<SimPayment> = {},
): { row: SimRow; payment: SimPayment } {
  const row = make.row(rowFields);
  const payment = make.payment(row, fields);
  return { row: answered(row, payment, make.rng.pick(SPELLINGS)), payment };
}

const plain: StoryTeller = (make) => {
  const { row, payment } = paid(make);
  const print = make.rng.chance(0.5) ? seedFingerprint(row) : null;
  return { rows: [{ ...row, fingerprint: print }], payments: [payment] };
};

const secondCardTry: StoryTeller = (make) => {
  const failed = make.charge({ status: "failed", captured: 0, age: make.age - 5 });
  const good = make.charge({ age: make.age - 10 });
  const { row, payment } = paid(make, {}, { charges: [failed, good] });
  return { rows: [row], payments: [payment] };
};

const refundedByAPerson: StoryTeller = (make) => {
  const amount = make.rng.pick([make.amount, Math.floor(make.amount / 3)]);
  const status = make.rng.pick(["succeeded", "failed"] as const);
  const refunds = [{ id: make.id("re"), amount, status, age: make.age - 12 * MINUTE }];
  const { row, payment } = paid(make, {}, { charges: [make.charge({ refunds })] });
  return { rows: [row], payments: [payment] };
};

const declined: StoryTeller = (make) => {
  const row = make.row({ state: "failed_terminal" });
  const charges = [make.charge({ status: "failed", captured: 0 })];
  const payment = make.payment(row, { status: "requires_payment_method", charges });
  return { rows: [make.rng.chance(0.5) ? answered(row, payment) : row], payments: [payment] };
};

const canceled: StoryTeller = (make) => {
  const row = make.row({ state: "failed_terminal" });
  return { rows: [row], payments: [make.payment(row, { status: "canceled", charges: [] })] };
};

/** Declined, then paid under a new row and a new key: one purchase, paid once. */
const triedAgain: StoryTeller = (make) => {
  const first = make.row({ state: "failed_terminal" });
  const charges = [make.charge({ status: "failed", captured: 0 })];
  const lost = make.payment(first, { status: "requires_payment_method", charges });
  const { row, payment } = paid(make, { createdAge: make.age - 60 });
  return { rows: [first, row], payments: [lost, payment] };
};

/** The same thing bought twice, minutes apart: different references win. */
const boughtTwice: StoryTeller = (make) => {
  const first = paid(make, { reference: `${make.reference}-a` });
  const createdAge = make.age - make.rng.int(20, 300);
  const second = paid(make, { reference: `${make.reference}-b`, createdAge });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

const meantTwice: StoryTeller = (make) => {
  const reference = make.rng.pick([null, make.reference]);
  const first = paid(make, { reference });
  const second = paid(make, { reference, createdAge: make.age - 90, repeatConfirmed: true });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

const alikeHoursApart: StoryTeller = (make) => {
  const age = make.rng.pick([make.age, make.age + 2 * HOUR]);
  const first = paid(make, { reference: null, createdAge: age + 2 * HOUR });
  const second = paid(make, { reference: null, createdAge: age });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

const twoPeople: StoryTeller = (make) => {
  const first = paid(make, { reference: null, customer: null });
  const other = { customer: `${make.customer}b` };
  const second = paid(make, { reference: null, customer: null, createdAge: make.age - 30 }, other);
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

/** A subscription's invoice has no row and needs none. */
const invoice: StoryTeller = (make) => ({
  rows: [],
  payments: [make.payment(null, { invoice: make.id("in"), lossy: false })],
});

/** The row of a payment this young may still be on its way. */
const seconds: StoryTeller = (make) => {
  const age = make.rng.int(5, 30);
  return { rows: [], payments: [make.payment(null, { age, lossy: false })] };
};

const underWay: StoryTeller = (make) => {
  const createdAge = make.rng.int(30, 4 * MINUTE);
  const row = make.row({ state: "in_flight", createdAge, updatedAge: createdAge - 1 });
  return { rows: [row], payments: [] };
};

const notYetTried: StoryTeller = (make) => {
  const state = make.rng.pick(["key_minted", "failed_retryable"] as const);
  const createdAge = make.rng.int(20 * MINUTE, 22 * HOUR);
  return { rows: [make.row({ state, createdAge })], payments: [] };
};

/** A bank debit is on its way for days; the row waits for it. */
const slowMethod: StoryTeller = (make) => {
  const createdAge = make.rng.int(20 * MINUTE, 5 * DAY);
  const row = make.row({ state: "in_flight", createdAge });
  const charges = [make.charge({ id: make.id("py"), status: "pending", captured: 0 })];
  const payment = make.payment(row, {
    status: "processing",
    charges: charges.map((charge) => ({ ...charge, age: createdAge - 6 })),
  });
  return { rows: [row], payments: [payment] };
};

const wonDispute: StoryTeller = (make) => {
  const age = make.age - 15 * MINUTE;
  const dispute = { id: make.id("du"), amount: make.amount, status: "won" as const, age };
  const disputes = [{ ...dispute, reason: "fraudulent" }];
  const { row, payment } = paid(make, {}, { charges: [make.charge({ disputes })] });
  return { rows: [row], payments: [payment] };
};

/** Only where a predicate says what is ours: another application on the same account. */
const neighbours: StoryTeller = (make) => {
  if (!make.setup.owned) return plain(make);
  return { rows: [], payments: [make.payment(null, { metadata: { app: "other" } })] };
};

export const HONEST_STORIES: Readonly<Record<string, StoryTeller>> = {
  plain,
  secondCardTry,
  refundedByAPerson,
  declined,
  canceled,
  triedAgain,
  boughtTwice,
  meantTwice,
  alikeHoursApart,
  twoPeople,
  invoice,
  seconds,
  underWay,
  notYetTried,
  slowMethod,
  wonDispute,
  neighbours,
};
