/** Stories whose row does not know how they ended: the resolver's work. */
import { paid } from "./honest-stories.ts";
import type { Maker, StoryTeller } from "./maker.ts";
import type { SimCharge, SimPayment, SimRow } from "./world.ts";
import { HOUR, MINUTE } from "./world.ts";

const OPEN = ["reconciling", "in_flight"] as const;

/** An open row; old enough for its limit, and for the proof of an absence. */
function openRow(make: Maker, fields: Partial<SimRow> = {}): SimRow {
  return make.row({ state: make.rng.pick(OPEN), ...fields });
}

const answerLost: StoryTeller = (make) => {
  const row = openRow(make);
  const failed = make.charge({ status: "failed", captured: 0, age: make.age - 5 });
  const charges = make.rng.chance(0.3)
    ? [failed, make.charge({ age: make.age - 12 })]
    : [make.charge()];
  return { rows: [row], payments: [make.payment(row, { charges })] };
};

/** The order number is the only mark. */
const onlyReference: StoryTeller = (make) => {
  const row = openRow(make);
  const metadata = { ...(make.setup.owned ? { app: "shop" } : {}), order: make.reference };
  const key = `key-${make.id("other")}`;
  return { rows: [row], payments: [make.payment(row, { metadata, key })] };
};

const refused: StoryTeller = (make) => {
  const row = openRow(make);
  const charges = [make.charge({ status: "failed", captured: 0 })];
  const status = make.rng.pick(["requires_payment_method", "canceled"] as const);
  return { rows: [row], payments: [make.payment(row, { status, charges })] };
};

const notFinal: StoryTeller = (make) => {
  const row = openRow(make);
  const ways: Partial<SimPayment>[] = [
    { status: "requires_action", charges: [] },
    { status: "requires_capture", charges: [make.charge({ captured: 0 })] },
    { status: "processing", charges: [make.charge({ status: "pending", captured: 0 })] },
  ];
  return { rows: [row], payments: [make.payment(row, make.rng.pick(ways))] };
};

/** The process died before the call, or the call never arrived. */
const neverSent: StoryTeller = (make) => ({ rows: [openRow(make)], payments: [] });

const lookedAtTooEarly: StoryTeller = (make) => {
  const createdAge = make.rng.int(60, 4 * MINUTE);
  const updatedAge = createdAge - 1;
  return { rows: [make.row({ state: "reconciling", createdAge, updatedAge })], payments: [] };
};

/** A reconciler that goes on touching its row: old, and changed a while ago. */
const touchedLater: StoryTeller = (make) => {
  const createdAge = make.age + make.rng.pick([1 * HOUR, 26 * HOUR]);
  const updatedAge = Math.min(make.age, make.rng.int(15 * MINUTE, 5 * HOUR));
  return { rows: [openRow(make, { createdAge, updatedAge })], payments: [] };
};

const openAndTwice: StoryTeller = (make) => {
  const row = openRow(make);
  const first = make.payment(row);
  const age = make.age - 60;
  const metadata = { ...first.metadata, intent_id: row.id };
  const charges = [make.charge({ age })];
  const again = make.payment(row, { age, metadata, key: `${row.key}-again`, charges });
  return { rows: [row], payments: [first, again] };
};

const openAndOther: StoryTeller = (make) => {
  const row = openRow(make);
  const other = make.rng.pick([
    { amount: row.amount * 100 },
    { amount: row.amount - 300 },
    { currency: "chf" },
  ]);
  return { rows: [{ ...row, ...other }], payments: [make.payment(row)] };
};

/** A retry under a new row paid; the first attempt's own end is not known. */
const openAndPaidByRetry: StoryTeller = (make) => {
  const row = openRow(make);
  const { row: retry, payment } = paid(make, { createdAge: make.age - 90 });
  return { rows: [row, retry], payments: [payment] };
};

/** Both attempts paid, and the first one's row does not know. */
const openAndBothPaid: StoryTeller = (make) => {
  const row = openRow(make);
  const { row: retry, payment } = paid(make, { createdAge: make.age - 90 });
  return { rows: [row, retry], payments: [make.payment(row), payment] };
};

/** Two payments of the order, and nothing but the order number ties them to the row. */
const openAndTwiceByReference: StoryTeller = (make) => {
  const row = openRow(make);
  const metadata = { ...(make.setup.owned ? { app: "shop" } : {}), order: make.reference };
  const one = (age: number): SimPayment =>
    make.payment(row, { age, metadata, key: `key-${make.id("other")}` });
  return { rows: [row], payments: [one(make.age - 5), one(make.age - 45)] };
};

/** A payment with no mark at all in the time of an open row: it might be the row's own. */
const besideUnmarked: StoryTeller = (make) => {
  const row = openRow(make);
  const charges: SimCharge[] = [make.charge({ status: "failed", captured: 0, age: make.age - 8 })];
  const unmarked = make.payment(null, {
    metadata: {},
    key: make.rng.pick(["", `stripe-node-retry-${make.id("sdk")}`]),
    status: "canceled",
    charges,
    age: make.age - 8,
  });
  return { rows: [row], payments: [unmarked] };
};

export const OPEN_STORIES: Readonly<Record<string, StoryTeller>> = {
  answerLost,
  onlyReference,
  refused,
  notFinal,
  neverSent,
  lookedAtTooEarly,
  touchedLater,
  openAndTwice,
  openAndOther,
  openAndPaidByRetry,
  openAndBothPaid,
  openAndTwiceByReference,
  besideUnmarked,
};
