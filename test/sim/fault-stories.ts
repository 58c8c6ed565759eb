/** Stories in which money or rows went wrong, for the detectors. */
import { answered } from "./maker.ts";
import type { Maker, StoryTeller } from "./maker.ts";
import { paid } from "./honest-stories.ts";
import type { SimCharge, SimRefund } from "./world.ts";
import { HOUR, MINUTE } from "./world.ts";

const LOCAL_FAILURES = ["failed_terminal", "failed_retryable", "key_minted"] as const;

/** Refunds of an excess charge, in all the ways they go. */
function refunds(make: Maker): SimRefund[] {
  const age = make.age - 14 * MINUTE;
  const whole = make.amount;
  return make.rng.pick<() => SimRefund[]>([
    () => [],
    () => [],
    () => [],
    () => [{ id: make.id("re"), amount: whole, status: "succeeded", age }],
    () => [
      { id: make.id("re"), amount: whole - 700, status: "succeeded", age },
      { id: make.id("re"), amount: 700, status: "succeeded", age: age - 30 },
    ],
    () => [{ id: make.id("re"), amount: Math.floor(whole / 4), status: "succeeded", age }],
    () => [{ id: make.id("re"), amount: whole, status: "pending", age }],
    () => [{ id: make.id("re"), amount: whole, status: "failed", age }],
    () => [{ id: make.id("re"), amount: whole, status: "undone", age }],
  ])();
}

/** A fresh key per retry: every copy has its row and is recorded. */
const freshKey: StoryTeller = (make) => {
  const first = paid(make);
  const createdAge = make.age - make.rng.int(20, 15 * MINUTE);
  const charges = [make.charge({ age: createdAge - 5, refunds: refunds(make) })];
  const second = paid(make, { createdAge }, { charges });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

/** Two to four payments for one order, one of them noted. */
const oneNoted: StoryTeller = (make) => {
  const row = make.row();
  const payments = Array.from({ length: make.rng.int(2, 4) }, (_, index) => {
    const age = make.age - 5 - index * 20;
    const metadata = { ...(make.setup.owned ? { app: "shop" } : {}), order: make.reference };
    const key = `${row.key}-${String(index)}`;
    const charges = [make.charge({ age, refunds: index === 1 ? refunds(make) : [] })];
    return make.payment(row, { age, metadata, key, charges });
  });
  return { rows: [answered(row, make.rng.pick(payments))], payments };
};

/** Two payments that both name the row in their metadata. */
const oneRowTwice: StoryTeller = (make) => {
  const { row, payment } = paid(make, { reference: make.rng.pick([null, make.reference]) });
  const age = make.age - make.rng.int(30, 600);
  const metadata = { ...payment.metadata, intent_id: row.id };
  const charges = [make.charge({ age, refunds: refunds(make) })];
  const again = make.payment(row, { age, metadata, key: `${row.key}-again`, charges });
  return { rows: [row], payments: [payment, again] };
};

/** The stored key was used again when Stripe had forgotten it. */
const staleKey: StoryTeller = (make) => {
  const age = make.age + 26 * HOUR;
  const { row, payment } = paid(make, { createdAge: age, reference: null });
  const charges = [make.charge({ age: make.age })];
  const again = make.payment(row, { age: make.age, charges, lossy: false });
  return { rows: [row], payments: [{ ...payment, lossy: false }, again] };
};

const onePaymentId: StoryTeller = (make) => {
  const shared = { paymentId: make.id("pay"), reference: null };
  const first = paid(make, shared);
  const second = paid(make, { ...shared, createdAge: make.age - 40 });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

const alike: StoryTeller = (make) => {
  const gap = make.rng.int(20, 400);
  const first = paid(make, { reference: null });
  const second = paid(make, { reference: null, createdAge: make.age - gap });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

const samePrint: StoryTeller = (make) => {
  const shared = { reference: null, fingerprint: `print-${make.reference}` };
  const first = paid(make, shared);
  const second = paid(make, { ...shared, createdAge: make.age - 35 });
  return { rows: [first.row, second.row], payments: [first.payment, second.payment] };
};

const burst: StoryTeller = (make) => {
  const count = make.rng.int(3, 17);
  const age = Math.max(make.age, 20 * MINUTE);
  const one = (index: number) =>
    make.payment(null, { age: age - index * 3, description: `auto top-up ${make.reference}` });
  return { rows: [], payments: Array.from({ length: count }, (_, index) => one(index)) };
};

const orphan: StoryTeller = (make) => {
  const app = make.setup.owned ? { app: "shop" } : {};
  const metadata = make.rng.pick<Record<string, string>>([
    {},
    app,
    { ...app, intent_id: make.id("gone") },
    { ...app, order: make.reference },
  ]);
  return { rows: [], payments: [make.payment(null, { metadata })] };
};

const orphansOfOneOrder: StoryTeller = (make) => {
  const app = make.setup.owned ? { app: "shop" } : {};
  const one = (age: number) =>
    make.payment(null, { age, metadata: { ...app, order: make.reference } });
  return { rows: [], payments: [one(make.age), one(make.age - 30)] };
};

const oneChargeTwoRows: StoryTeller = (make) => {
  const { row, payment } = paid(make, { reference: null });
  const other = make.row({ reference: null, createdAge: make.age - 60 });
  return {
    rows: [row, answered(other, payment, make.rng.pick(["ch", "pi"]))],
    payments: [payment],
  };
};

const tampered: StoryTeller = (make) => {
  const { row, payment } = paid(make);
  return {
    rows: [{ ...row, amount: row.amount + 1_100, amountAtFirst: row.amount }],
    payments: [payment],
  };
};

const wrongUnit: StoryTeller = (make) => {
  const { row, payment } = paid(make);
  const wrong = make.rng.pick([
    { amount: row.amount * 100 },
    { amount: row.amount / 10 },
    { amount: row.amount + 7 },
    { currency: "chf" },
  ]);
  return { rows: [{ ...row, ...wrong }], payments: [payment] };
};

const partialCapture: StoryTeller = (make) => {
  const charges = [make.charge({ captured: make.amount - 5_000 })];
  const { row, payment } = paid(make, {}, { charges });
  return { rows: [row], payments: [payment] };
};

const failedButPaid: StoryTeller = (make) => {
  const row = make.row({ state: make.rng.pick(LOCAL_FAILURES) });
  const failed = make.charge({ status: "failed", captured: 0, age: make.age - 5 });
  const good = make.charge({ age: make.age - 40 });
  const charges = make.rng.chance(0.5) ? [failed, good] : [good];
  const payment = make.payment(row, { charges });
  const noted = charges.length === 2 && make.rng.chance(0.5);
  return { rows: [noted ? { ...row, chargeId: failed.id } : row], payments: [payment] };
};

const gaveUpButHeld: StoryTeller = (make) => {
  const row = make.row({ state: "failed_terminal" });
  const charges: SimCharge[] = [make.charge({ captured: 0 })];
  return { rows: [row], payments: [make.payment(row, { status: "requires_capture", charges })] };
};

const recordedNotPaid: StoryTeller = (make) => {
  const row = make.row();
  const status = make.rng.pick(["requires_payment_method", "canceled"] as const);
  const charges = [make.charge({ status: "failed", captured: 0 })];
  const payment = make.payment(row, { status, charges });
  return { rows: [answered(row, payment, make.rng.pick(["ch", "pi"]))], payments: [payment] };
};

const recordedNeverMade: StoryTeller = (make) => ({
  rows: [make.row({ chargeId: make.id("pi") })],
  payments: [],
});

const tooOldToRetry: StoryTeller = (make) => {
  const state = make.rng.pick(["key_minted", "failed_retryable"] as const);
  return { rows: [make.row({ state, createdAge: make.age + 26 * HOUR })], payments: [] };
};

const keyForRefund: StoryTeller = (make) => {
  const { row, payment } = paid(make);
  const { id } = make.row();
  const refund = {
    id: make.id("re"),
    amount: 500,
    status: "succeeded" as const,
    age: make.age - 700,
  };
  const charges = payment.charges.map((charge) => ({ ...charge, refunds: [refund] }));
  const back = {
    ...row,
    id,
    kind: "refund" as const,
    amount: refund.amount,
    chargeId: refund.id,
    createdAge: refund.age,
    updatedAge: refund.age,
  };
  return { rows: [row, back], payments: [{ ...payment, charges }] };
};

/** Where there is no second account in the scope it is two purchases with keys of their own. */
const keyOfNeighbour: StoryTeller = (make) => {
  const first = paid(make, { reference: `${make.reference}-a` });
  if (make.writer.neighbour === null) return { rows: [first.row], payments: [first.payment] };
  const other = make.row({
    account: make.writer.neighbour,
    reference: `${make.reference}-b`,
    key: first.row.key,
    state: "failed_terminal",
    createdAge: make.age - 60,
  });
  return { rows: [first.row, other], payments: [first.payment] };
};

/** The metadata names one row and the key another. */
const twoMarks: StoryTeller = (make) => {
  const { row, payment } = paid(make, { reference: null });
  const other = make.row({ reference: null, state: "failed_terminal", createdAge: make.age - 30 });
  const metadata = { ...payment.metadata, intent_id: other.id };
  return { rows: [row, other], payments: [{ ...payment, metadata, lossy: false }] };
};

const disputed: StoryTeller = (make) => {
  const status = make.rng.pick(["needs_response", "warning_needs_response", "lost"] as const);
  const reason = make.rng.pick(["duplicate", "fraudulent"]);
  const age = make.age - 12 * MINUTE;
  const disputes = [{ id: make.id("du"), amount: make.amount, status, reason, age }];
  const refund = { id: make.id("re"), amount: make.amount, status: "succeeded" as const, age };
  const back = make.rng.chance(0.3) ? [refund] : [];
  const charges = [make.charge({ disputes, refunds: back })];
  const { row, payment } = paid(make, {}, { charges });
  return { rows: [row], payments: [payment] };
};

const onePaymentIdTwoAmounts: StoryTeller = (make) => {
  const shared = { paymentId: make.id("pay"), reference: null };
  const { row, payment } = paid(make, shared);
  const amount = make.amount + 900;
  const other = make.row({
    ...shared,
    amount,
    state: "failed_terminal",
    createdAge: make.age - 40,
  });
  return { rows: [row, other], payments: [payment] };
};

export const FAULT_STORIES: Readonly<Record<string, StoryTeller>> = {
  freshKey,
  oneNoted,
  oneRowTwice,
  staleKey,
  onePaymentId,
  alike,
  samePrint,
  burst,
  orphan,
  orphansOfOneOrder,
  oneChargeTwoRows,
  tampered,
  wrongUnit,
  partialCapture,
  failedButPaid,
  gaveUpButHeld,
  recordedNotPaid,
  recordedNeverMade,
  tooOldToRetry,
  keyForRefund,
  keyOfNeighbour,
  twoMarks,
  disputed,
  onePaymentIdTwoAmounts,
};
