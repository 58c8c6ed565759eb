/** Random lives of a few operations: workers, faults, crashes and clocks, and a naive writer. */
import fc from "fast-check";
import type Stripe from "stripe";

import { LedgerError, executePayment, mintIntent, readIntent } from "../../src/ledger/ledger.ts";
import type { ExecuteDeps, StepName } from "../../src/ledger/ledger.ts";
import type { Fault } from "../../src/sandbox/stripe/faults.ts";
import { withTx } from "../../src/store/tx.ts";
import type { E2e } from "../e2e/world.ts";

/** Workers that come at once, what their requests suffer, and where the first of them ends. */
export interface Work {
  readonly kind: "work";
  readonly workers: number;
  readonly faults: readonly Fault[];
  /** Killed there; null: not. */
  readonly crashAt: StepName | null;
  /** Sleeps there until a later `wake`; null: not. */
  readonly sleepAt: StepName | null;
}

export type Command =
  Work | { readonly kind: "advance"; readonly minutes: number } | { readonly kind: "wake" };

/** The life of one operation. */
export interface Life {
  readonly card: string;
  readonly commands: readonly Command[];
}

const body = (type: string) => ({ error: { type, message: "a fault" } });

const POSTED: readonly (readonly Fault[])[] = [
  [],
  [{ kind: "lost_response" }],
  [{ kind: "lost_response", count: 2 }],
  [{ kind: "cut_body", count: 2 }],
  [{ kind: "error_before" }],
  [{ kind: "error_before", status: 503 }],
  [{ kind: "error_after" }],
  // A proxy's JSON, which the SDK takes for an answer.
  [{ kind: "respond", status: 503, body: { message: "Service Unavailable" } }],
  [{ kind: "rate_limit" }],
  [{ kind: "lock_timeout" }],
  [{ kind: "lost_response" }, { kind: "rate_limit", nth: 2 }],
  [{ kind: "respond", status: 401, body: body("invalid_request_error") }],
  [{ kind: "respond", status: 409, body: body("invalid_request_error") }],
  [{ kind: "respond", status: 400, body: body("idempotency_error") }],
];
const READ: readonly (readonly Fault[])[] = [
  [],
  [],
  [{ kind: "respond", status: 403, body: body("invalid_request_error"), count: 3 }],
];

const step = fc.constantFrom<StepName[]>("admitted", "answered", "doubted", "looked", "stored");
const seldom = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });

const work = fc.record({
  kind: fc.constant("work" as const),
  workers: fc.integer({ min: 1, max: 3 }),
  faults: fc
    .tuple(fc.constantFrom(...POSTED), fc.constantFrom(...READ))
    .map(([posted, read]) => [
      ...posted.map((fault) => ({ ...fault, method: "POST" })),
      ...read.map((fault) => ({ ...fault, method: "GET" })),
    ]),
  crashAt: seldom(step),
  // A worker that sleeps before it sends is held by its own clock, which these tests do not move.
  sleepAt: seldom(fc.constantFrom<StepName[]>("read", "answered", "doubted", "looked")),
});

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: work },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("advance" as const),
      minutes: fc.constantFrom(1, 6, 12, 600),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "wake" as const }) },
);

/** Any life. */
export const life: fc.Arbitrary<Life> = fc.record({
  card: fc.oneof(
    { weight: 5, arbitrary: fc.constant("pm_card_visa") },
    { weight: 1, arbitrary: fc.constant("pm_card_chargeDeclined") },
  ),
  commands: fc.array(command, { minLength: 1, maxLength: 6 }),
});

class Crash extends Error {}

/** The stage: one database, one stand-in, and the operations that lived there. */
export interface Stage {
  readonly world: E2e;
  readonly stripe: Stripe;
  readonly intents: string[];
  readonly naive: string[];
}

/** Successful charges of an intent, as the provider has them. */
export function chargesOf(stage: Stage, intentId: string): number {
  return stage.world.stripe.control.events().filter(({ type, snapshot }) => {
    if (type !== "charge.succeeded" || snapshot.kind !== "record") return false;
    return snapshot.record.metadata["intent_id"] === intentId;
  }).length;
}

/** Lives one life; `check` runs whenever no worker is awake. */
export async function live(stage: Stage, one: Life, check: (id: string) => Promise<void>) {
  const { control } = stage.world.stripe;
  const clock = { now: () => new Date(control.now()) };
  const number = stage.intents.length + 1;
  const intentId = `led-${String(number)}`;
  stage.intents.push(intentId);
  const deps: ExecuteDeps = { db: stage.world.pool, stripe: stage.stripe, clock };
  // Amounts and references of their own: equal ones would rightly be called alike.
  await withTx(stage.world.pool, (tx) =>
    mintIntent(tx, {
      ...{ intentId, accountId: "A", amount: BigInt(1_000 + number), currency: "usd", clock },
      ...{ reference: `order-${intentId}`, request: { payment_method: one.card } },
    }),
  );
  let wake: () => void = () => undefined;
  let asleep: Promise<unknown>[] = [];
  const awaken = async (): Promise<void> => {
    wake();
    await Promise.all(asleep);
    asleep = [];
  };
  for (const next of one.commands) {
    if (next.kind === "advance") control.advance(next.minutes * 60_000);
    if (next.kind === "wake") await awaken();
    if (next.kind === "work") {
      next.faults.forEach((fault) => control.fault(fault));
      const gate = new Promise<void>((resolve) => {
        const before = wake;
        wake = () => {
          before();
          resolve();
        };
      });
      const { sleeping } = await workers(deps, intentId, next, gate);
      asleep.push(...sleeping);
      control.clearFaults();
    }
    if (asleep.length === 0) await check(intentId);
  }
  await awaken();
  await check(intentId);
  await drain(stage, deps, intentId);
}

/** Runs the workers of a command; answers the one that fell asleep. */
async function workers(
  deps: ExecuteDeps,
  intentId: string,
  { workers: count, crashAt, sleepAt }: Work,
  gate: Promise<void>,
): Promise<{ readonly sleeping: readonly Promise<unknown>[] }> {
  let fellAsleep: () => void = () => undefined;
  const sleeps = new Promise<"asleep">((resolve) => {
    fellAsleep = () => resolve("asleep");
  });
  const first = tell(
    executePayment(
      {
        ...deps,
        onStep: async (at) => {
          if (at === crashAt) throw new Crash();
          if (at !== sleepAt) return;
          fellAsleep();
          await gate;
        },
      },
      intentId,
    ),
  );
  const others = Array.from({ length: count - 1 }, () => tell(executePayment(deps, intentId)));
  const ended = await Promise.race([first, sleeps]);
  await Promise.all(others);
  return { sleeping: ended === "asleep" ? [first] : [] };
}

/** What a worker was told. Anything but the ledger's own words and a crash is a defect. */
async function tell(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "paid";
  } catch (error) {
    if (error instanceof Crash) return "crashed";
    if (error instanceof LedgerError && error.code !== "invalid") return error.code;
    throw error;
  }
}

// A crashed worker, a look that is too early, a key that is sent again: more than enough.
const DRAIN_MAX = 6;

/** Somebody calls again now and then, as agents do, until the operation has an end. */
async function drain(stage: Stage, deps: ExecuteDeps, intentId: string): Promise<void> {
  for (let turn = 0; turn < DRAIN_MAX; turn += 1) {
    const told = await tell(executePayment(deps, intentId));
    if (told === "paid" || told === "failed") return;
    stage.world.stripe.control.advance(7 * 60_000);
  }
  const { state } = await readIntent(deps, intentId);
  throw new Error(`${intentId} has no end: ${state}`);
}

// What agents do by default: three attempts, each with a fresh key.
const NAIVE_ATTEMPTS = 3;

/** The same life with the writer that everybody writes first. */
export async function liveNaively(stage: Stage, one: Life): Promise<void> {
  const { control } = stage.world.stripe;
  const number = stage.naive.length + 1;
  const intentId = `nai-${String(number)}`;
  stage.naive.push(intentId);
  const amount = 500_000 + number;
  await stage.world.row({ id: intentId, state: "in_flight", amount });
  for (const next of one.commands) {
    if (next.kind !== "work") continue;
    next.faults.forEach((fault) => control.fault(fault));
    for (let attempt = 0; attempt < NAIVE_ATTEMPTS; attempt += 1) {
      const paid = await stage.stripe.paymentIntents
        .create(
          {
            ...{ amount, currency: "usd", payment_method: one.card, confirm: true },
            metadata: { intent_id: intentId },
          },
          { idempotencyKey: crypto.randomUUID(), maxNetworkRetries: 0 },
        )
        .catch(() => null);
      if (paid !== null) break;
    }
    control.clearFaults();
  }
}
