/** The real ledger under a schedule: PostgreSQL, worker processes, the stand-in for Stripe. */
import type { Pool } from "pg";
import Stripe from "stripe";

import type { Clock } from "../core/clock.ts";
import { ledgerTableSql } from "../ledger/ledger.ts";
import { startStripeSandbox } from "../sandbox/stripe/server.ts";
import type { StripeSandbox } from "../sandbox/stripe/server.ts";
import { operationOf, operationsOf } from "./design.ts";
import type { Trace } from "./design.ts";
import { startFleet } from "./fleet.ts";
import type { Fleet, WorkerProgram, Word } from "./fleet.ts";
import { requestsOf } from "./schedule.ts";
import type { LabEvent, LabRequest, Schedule } from "./schedule.ts";
import type { Order } from "./worker-words.ts";

/** What the real ledger runs on. */
export interface RealDeps extends WorkerProgram {
  readonly pool: Pool;
  /** Of the same database, for the workers. */
  readonly databaseUrl: string;
  readonly clock: Clock;
}

const SCHEMA = "tallyd_lab";
const TABLE = `${SCHEMA}.payment_intents`;
// Stripe keeps a key for at least 24 hours; past this it is gone, and past the ledger's horizon.
const EXPIRE_MS = 25 * 3_600_000;
// Longer than the ledger lets a row be in flight before it is looked up, and than its settling.
const SETTLE_MS = 15 * 60_000;
const OPERATIONS_MAX = 10_000;

interface Run {
  readonly fleet: Fleet;
  readonly stripe: StripeSandbox;
  readonly answers: Trace["answers"][number][];
  aheadMs: number;
}

/** Runs each schedule on its own empty table, with its own stand-in. Tells about each when done. */
export async function runLedger(
  deps: RealDeps,
  schedules: readonly Schedule[],
  onDone: (schedule: Schedule) => void,
): Promise<readonly Trace[]> {
  const time = { aheadMs: 0 };
  const stripe = await startStripeSandbox({ now: () => deps.clock.now().getTime() + time.aheadMs });
  try {
    await deps.pool.query(`drop schema if exists ${SCHEMA} cascade`);
    await deps.pool.query(`create schema ${SCHEMA}`);
    await deps.pool.query(ledgerTableSql(TABLE));
    const { databaseUrl } = deps;
    const fleet = await startFleet(
      { say: "setup", databaseUrl, stripeUrl: stripe.url, table: TABLE },
      deps,
    );
    try {
      const traces: Trace[] = [];
      for (const schedule of schedules) {
        const run: Run = Object.assign(time, { fleet, stripe, answers: [] });
        traces.push(await playReal(deps, run, schedule));
        onDone(schedule);
      }
      return traces;
    } finally {
      await fleet.close();
    }
  } finally {
    await stripe.close();
  }
}

async function playReal(deps: RealDeps, run: Run, schedule: Schedule): Promise<Trace> {
  for (const item of schedule.events) await playEvent(run, schedule, item);
  for (const item of schedule.events.flatMap(requestsOf)) await end(run, item.request);
  const settled = await settle(deps, run, schedule);
  // Last of all: what is paid again long afterwards is paid twice as well.
  const effects = await effectsOf(run.stripe, schedule);
  const { answers } = run;
  return { answers: [...answers], effects, settled };
}

async function playEvent(run: Run, schedule: Schedule, item: LabEvent): Promise<void> {
  switch (item.event) {
    case "arrive":
    case "race":
      await Promise.all(item.event === "race" ? item.requests.map(one) : [one(item)]);
      return;
    case "complete":
    case "lose":
      await end(run, item.request);
      return;
    case "expire":
      run.aheadMs += EXPIRE_MS;
      return;
    case "restart":
      await run.fleet.restart();
      return;
  }
  function one(request: LabRequest): Promise<void> {
    return arrive(run, schedule, request);
  }
}

async function arrive(run: Run, schedule: Schedule, request: LabRequest): Promise<void> {
  const isLost = schedule.events.some(
    (item) => item.event === "lose" && item.request === request.request,
  );
  // Known to whoever wrote the schedule only: the answer is lost on its way, after the effect; so
  // is that of the second attempt, which the SDK makes by itself when a connection breaks.
  const withdraw = isLost
    ? run.stripe.control.fault({ kind: "lost_response", method: "POST", count: Infinity })
    : null;
  const word = await run.fleet.give(orderOf(run, schedule, request, true));
  withdraw?.();
  note(run, word, request.request);
}

function orderOf(run: Run, schedule: Schedule, request: LabRequest, hold: boolean): Order {
  return {
    ...{ say: "order", request: request.request, hold, aheadMs: run.aheadMs },
    // One table holds all schedules: names of one must not meet those of another.
    intentId: `${schedule.name}:${operationOf(request)}`,
    accountId: request.principal,
    amount: request.amount,
    destination: request.destination,
  };
}

function note(run: Run, word: Word, request: string): void {
  if (word.say === "ended") requireNoFault(word, request);
  run.answers.push({ request, answer: word.say === "answered" ? "admitted" : word.answer });
}

async function end(run: Run, request: string): Promise<void> {
  const word = await run.fleet.release(request);
  if (word?.say === "ended") requireNoFault(word, request);
}

function requireNoFault(word: Word & { readonly say: "ended" }, request: string): void {
  if (word.fault !== "") throw new Error(`request ${request}: ${word.fault}`);
}

/** Successful payments by operation, as the provider has them. */
async function effectsOf(
  stripe: StripeSandbox,
  schedule: Schedule,
): Promise<Record<string, number>> {
  const { hostname, port } = new URL(stripe.url);
  const client = new Stripe("sk_test_laboratory_0001", {
    ...{ host: hostname, port: Number(port), protocol: "http", telemetry: false },
  });
  const all = await client.paymentIntents
    .list({ limit: 100 })
    .autoPagingToArray({ limit: OPERATIONS_MAX });
  const prefix = `${schedule.name}:`;
  const effects: Record<string, number> = {};
  for (const { status, metadata } of all) {
    const intentId = metadata["intent_id"] ?? "";
    if (status !== "succeeded" || !intentId.startsWith(prefix)) continue;
    const name = intentId.slice(prefix.length);
    effects[name] = (effects[name] ?? 0) + 1;
  }
  return effects;
}

// From in flight to in doubt, and from there to whatever it comes to.
const ROUNDS = 2;

/**
 * Asks again for every operation when nothing can be under way, and counts what is recorded.
 */
async function settle(deps: RealDeps, run: Run, schedule: Schedule): Promise<number> {
  const first = new Map<string, LabRequest>();
  for (const request of schedule.events.flatMap(requestsOf)) {
    if (!first.has(operationOf(request))) first.set(operationOf(request), request);
  }
  for (let round = 1; round <= ROUNDS; round += 1) {
    run.aheadMs += SETTLE_MS;
    for (const request of first.values()) {
      const asked = `${request.request}/settle-${round}`;
      const order = { ...orderOf(run, schedule, request, false), request: asked };
      const word = await run.fleet.give(order);
      if (word.say === "ended") requireNoFault(word, asked);
    }
  }
  const found = await deps.pool.query<{ recorded: number }>(
    `select count(*)::integer as recorded
       from ${TABLE} p
      where p.state = 'recorded'
        and p.intent_id = any ($1::text[])`,
    [operationsOf(schedule).map((name) => `${schedule.name}:${name}`)],
  );
  return found.rows[0]?.recorded ?? 0;
}
