/** What a worker process of the laboratory does: it mints and pays with the real ledger. */
import type { Pool } from "pg";
import Stripe from "stripe";

import { addMs, systemClock } from "../core/clock.ts";
import type { Clock } from "../core/clock.ts";
import { messageOf } from "../core/message.ts";
import { LedgerError, executePayment, mintIntent } from "../ledger/ledger.ts";
import type { Db, StripeClient } from "../ledger/ledger.ts";
import { openPool } from "../store/pool.ts";
import { withTx } from "../store/tx.ts";
import type { Answer } from "./design.ts";
import type { FromWorker, Order, Setup, ToWorker } from "./worker-words.ts";

// One request is one transaction at a time; races are between processes, not inside of one.
const CONNECTIONS_MAX = 4;
const KEY = "sk_test_laboratory_0001";

/** What a worker works with. */
export interface Desk {
  /** Where it mints. */
  readonly pool: Pool;
  /** What the ledger reads and writes its rows through. */
  readonly db: Db;
  readonly stripe: StripeClient;
  readonly table: string;
}

/** Takes orders from the process that started this one, at a desk made of its setup. */
export function serveDesk(open: (setup: Setup) => Desk): void {
  let desk: Desk | null = null;
  const held = new Map<string, () => void>();
  process.on("message", (message: ToWorker) => {
    if (message.say === "setup") {
      desk = open(message);
      tell({ say: "ready" });
    } else if (message.say === "release") {
      held.get(message.request)?.();
      held.delete(message.request);
    } else if (desk !== null) {
      void carryOut(desk, message, held);
    }
  });
  // Whoever started this process is gone: nobody is left to work for.
  process.on("disconnect", () => {
    process.exit(0);
  });
}

function tell(message: FromWorker): void {
  process.send?.(message);
}

/** A desk with the official client and a pool of its own. */
export function openDesk({ databaseUrl, stripeUrl, table }: Setup): Desk {
  const { hostname, port } = new URL(stripeUrl);
  const pool = openPool({
    ...{ url: databaseUrl, applicationName: "tallyd-lab", max: CONNECTIONS_MAX },
  });
  const stripe = new Stripe(KEY, {
    ...{ host: hostname, port: Number(port), protocol: "http" },
    ...{ maxNetworkRetries: 0, telemetry: false },
  });
  return { pool, db: pool, stripe, table };
}

async function carryOut(at: Desk, order: Order, held: Map<string, () => void>): Promise<void> {
  const { request } = order;
  const seen = { answered: false };
  let answer: Answer = "blocked";
  let fault = "";
  try {
    await pay(at, order, async () => {
      seen.answered = true;
      if (!order.hold) return;
      await new Promise<void>((resolve) => {
        held.set(request, resolve);
        tell({ say: "answered", request });
      });
    });
    answer = "replayed";
  } catch (error) {
    if (error instanceof LedgerError && error.code === "conflict") answer = "conflict";
    else if (!(error instanceof LedgerError) || !DOUBTS.has(error.code)) fault = messageOf(error);
  }
  // What reached the provider was admitted, whatever was made of its answer.
  tell({ say: "ended", request, answer: seen.answered ? "admitted" : answer, fault });
}

// Under way, in doubt, or not done at all: the caller is to come again.
const DOUBTS: ReadonlySet<string> = new Set(["in_progress", "unknown", "pending", "retryable"]);

async function pay(at: Desk, order: Order, onAnswer: () => Promise<void>): Promise<void> {
  const clock: Clock = { now: () => addMs(systemClock.now(), order.aheadMs) };
  const { intentId, accountId, amount, destination } = order;
  const { pool, db, stripe, table } = at;
  await withTx(pool, (tx) =>
    mintIntent(tx, {
      ...{ intentId, accountId, amount: BigInt(amount), currency: "usd", clock, table },
      request: { payment_method: "pm_card_visa", description: destination },
    }),
  );
  await executePayment(
    {
      ...{ db, stripe, clock, table },
      onStep: (step) => (step === "answered" ? onAnswer() : undefined),
    },
    intentId,
  );
}
