/** Goal: the example of the README works as it stands there. */
import { readFileSync } from "node:fs";
import type { Pool } from "pg";
import type Stripe from "stripe";
import ts from "typescript";
import { afterAll, beforeAll, expect, it } from "vitest";

import { LIMITS } from "../../src/ledger/ledger.ts";
import * as ledger from "../../src/ledger/ledger.ts";
import type { LedgerCode, Payment } from "../../src/ledger/ledger.ts";
import { clientOf } from "./client.ts";
import { openLedgerWorld } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const SECTION = /^## Pay so that[^]*?(?=^## )/m.exec(README)?.[0] ?? "";

interface Example {
  readonly order: (pool: Pool, id: string, cents: bigint) => Promise<void>;
  readonly chargeCustomer: (db: Pool, stripe: Stripe, call: object) => Promise<Payment>;
}

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
  await world.fresh("own");
});
afterAll(() => world.close());

/** Runs the first example of the section with the library in its place. */
function example(): Example {
  const source = /```ts\n([^]*?)```/.exec(SECTION)?.[1] ?? "";
  const module = ts.ModuleKind.CommonJS;
  const { outputText } = ts.transpileModule(source, { compilerOptions: { module } });
  const exported: Partial<Example> = {};
  const load = (name: string): unknown => (name === "tallyd/ledger" ? ledger : undefined);
  // The code of the README, run as the module that it is.
  const run = Reflect.construct(Function, ["exports", "require", outputText]) as (
    exports: object,
    require: unknown,
  ) => void;
  run(exported, load);
  return exported as Example;
}

it("default", async () => {
  const { order, chargeCustomer } = example();
  await world.pool.query("create table orders (id text primary key)");
  await order(world.pool, "7", 1_250n);
  await order(world.pool, "7", 1_250n);
  const stripe = clientOf(world.stripe.url);
  const call = { intent_id: "order-7" };
  const [first, second] = await Promise.all([
    chargeCustomer(world.pool, stripe, call),
    chargeCustomer(world.pool, stripe, call),
  ]);
  expect(first.response).toEqual(second.response);
  expect(await world.charges()).toEqual(["1250 usd"]);
  await expect(order(world.pool, "7", 1_300n)).rejects.toMatchObject({ code: "conflict" });
});

it("behavior: every code stands in its table, and every limit is the one in force", () => {
  const codes: Record<LedgerCode, true> = {
    ...{ failed: true, retryable: true, unknown: true, pending: true, in_progress: true },
    ...{ conflict: true, not_found: true, invalid: true },
  };
  for (const code of Object.keys(codes)) expect(SECTION).toContain(`\`${code}\``);
  const { inFlightMs, settleMs, horizonMs } = LIMITS;
  expect([inFlightMs / 60_000, settleMs / 60_000, horizonMs / 3_600_000]).toEqual([5, 6, 20]);
  expect(SECTION).toMatch(/after 5 minutes[^]*6 minutes[^]*20 hours/);
});
