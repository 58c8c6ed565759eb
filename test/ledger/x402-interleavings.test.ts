/**
 * Goal: over x402, whatever workers, servers, crashes and clocks do, money moves at most once for
 * an intent, and in the end it has moved and is recorded.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { LedgerError } from "../../src/ledger/ledger.ts";
import type { X402StepName } from "../../src/ledger/ledger.ts";
import { chainFault } from "../support/chain-world.ts";
import { openX402LedgerWorld } from "./x402-world.ts";
import type { X402LedgerWorld } from "./x402-world.ts";

const fault = await chainFault();
// A life takes a quarter of a second.
const LIVES = 25;
const DRAIN_MAX = 8;
const LATER_S = 6 * 60;

let world: X402LedgerWorld;

beforeAll(async () => {
  if (fault === "") world = await openX402LedgerWorld();
});
afterAll(async () => {
  if (fault === "") await world.close();
});

/** What becomes of a request that carries a payment. */
const TROUBLES = ["none", "lost", "unreachable", "refused", "broken after"] as const;
type Trouble = (typeof TROUBLES)[number];

function suffering(trouble: Trouble): typeof fetch {
  return async (input, init) => {
    const pays = new Headers(init?.headers).has("payment-signature");
    if (!pays || trouble === "none") return world.deps.fetch(input, init);
    if (trouble === "lost") world.line.loseNext();
    if (trouble === "unreachable") throw new TypeError("fetch failed");
    if (trouble === "refused") return new Response("{}", { status: 402 });
    const answer = await world.deps.fetch(input, init);
    return trouble === "broken after" ? new Response("", { status: 500 }) : answer;
  };
}

class Crash extends Error {}

const step = fc.constantFrom<X402StepName[]>(
  ...(["read", "asked", "admitted", "signed", "answered", "doubted", "looked", "stored"] as const),
);
const command = fc.record({
  workers: fc.integer({ min: 1, max: 3 }),
  trouble: fc.constantFrom(...TROUBLES),
  crashAt: fc.option(step, { freq: 2 }),
  later: fc.boolean(),
});
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

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

async function later(): Promise<void> {
  await world.advance(LATER_S);
  await world.evm.chain.mine(6, 1);
}

async function live(id: string, commands: readonly Command[]): Promise<void> {
  for (const one of commands) {
    const onStep = (at: X402StepName): void => {
      if (at === one.crashAt) throw new Crash();
    };
    const troubled = { fetch: suffering(one.trouble) };
    await Promise.all([
      tell(world.pay(id, { ...troubled, onStep })),
      ...Array.from({ length: one.workers - 1 }, () => tell(world.pay(id, troubled))),
    ]);
    if (one.later) await later();
  }
}

describe.skipIf(fault !== "")("payX402", () => {
  it("behavior: at most one movement, and none is lost", async () => {
    let lives = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 4 }), async (commands) => {
        lives += 1;
        const id = `life-${String(lives)}`;
        await world.mint(id);
        const before = await world.transfers();
        await live(id, commands);
        expect((await world.transfers()) - before).toBeLessThanOrEqual(1);
        for (let turn = 0; turn < DRAIN_MAX; turn += 1) {
          if ((await tell(world.pay(id))) === "paid") break;
          await later();
        }
        expect((await world.row(id)).state).toBe("recorded");
        expect((await world.transfers()) - before).toBe(1);
      }),
      { numRuns: LIVES, endOnFailure: true },
    );
  });
});
