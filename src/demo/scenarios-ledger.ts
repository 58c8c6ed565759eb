/** Payments through `tallyd/ledger`, under the faults of the others: nothing may be found. */
import { setTimeout as sleep } from "node:timers/promises";

import { LedgerError, executePayment, mintIntent } from "../ledger/ledger.ts";
import type { AgentDeps, Purchase } from "./agent.ts";
import { NOTHING } from "./scenario.ts";
import type { Scenario, SceneDeps } from "./scenario.ts";

async function mintByLedger(deps: SceneDeps, name: string): Promise<Purchase> {
  const purchase = deps.purchase(name);
  const { intentId, account, currency, customer, reference } = purchase;
  await mintIntent(deps.pool, {
    ...{ intentId, accountId: account, amount: BigInt(purchase.amount), currency, customer },
    ...(reference === null ? {} : { reference }),
    request: { payment_method: "pm_card_visa" },
  });
  return purchase;
}

async function payByLedger(deps: AgentDeps, purchase: Purchase, waitMs = 0): Promise<void> {
  const { pool, stripe } = deps;
  await executePayment({ db: pool, stripe }, purchase.intentId, { waitMs });
}

const ledger: Scenario = {
  title: "paid by the payment ledger",
  times: 24,
  run: async (deps) => {
    await payByLedger(deps, await mintByLedger(deps, "ledger"));
    return NOTHING;
  },
};

// What the look-up cannot see yet it does not guess: the agent asks again.
const CALLS_MAX = 20;
const CALL_PAUSE_MS = 500;

const ledgerLost: Scenario = {
  title: "by the ledger: the answer was lost, the agent called again",
  times: 8,
  run: async (deps) => {
    const purchase = await mintByLedger(deps, "ledger-lost");
    await payByLedger(deps.lossy, purchase).catch(expectUnknown);
    for (let call = 1; ; call += 1) {
      try {
        await payByLedger(deps, purchase);
        return NOTHING;
      } catch (error) {
        if (call === CALLS_MAX) throw error;
        expectUnknown(error);
        await sleep(CALL_PAUSE_MS);
      }
    }
  },
};

function expectUnknown(error: unknown): void {
  if (error instanceof LedgerError && error.code === "unknown") return;
  throw error;
}

const ledgerCrowd: Scenario = {
  title: "by the ledger: three workers at once",
  times: 8,
  run: async (deps) => {
    const purchase = await mintByLedger(deps, "ledger-crowd");
    await Promise.all([1, 2, 3].map(() => payByLedger(deps, purchase, CROWD_WAIT_MS)));
    return NOTHING;
  },
};

// A busy machine may take seconds for a payment.
const CROWD_WAIT_MS = 30_000;

/** What agents with a payment ledger do. */
export const LEDGER_SCENARIOS: readonly Scenario[] = [ledger, ledgerLost, ledgerCrowd];
