/**
 * Goal: a worker killed at any point between two steps leaves neither two charges nor a lost one.
 * Method: real processes, `kill -9`, and whoever comes next.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import type { Fault } from "../../src/sandbox/stripe/faults.ts";
import type { Order } from "./crash-child.ts";
import { buildProgram } from "../support/built.ts";
import type { Built } from "../support/built.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

const WAIT = { timeout: 30_000 };

let child: Built;
let world: LedgerWorld;

beforeAll(async () => {
  child = await buildProgram("test/ledger/crash-child.ts");
  world = await openLedgerWorld();
});
afterAll(async () => {
  await world.close();
  await child.remove();
});
beforeEach(() => world.fresh("own"));

function start(killAt: string) {
  const where = { databaseUrl: world.url, stripeUrl: world.stripe.url };
  const order: Order = { ...where, intentId: "inv-1", killAt };
  return spawn(process.execPath, [child.file, JSON.stringify(order)], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** Lets the worker run into its death. */
async function killedAt(killAt: string): Promise<void> {
  const [, signal] = (await once(start(killAt), "exit")) as [number | null, string | null];
  expect(signal).toBe("SIGKILL");
}

/** Whoever comes next: mints again, asks again, and again when told to. */
async function next(): Promise<void> {
  await world.mint("inv-1");
  for (const minutes of [0, 6, 7]) {
    world.advance(minutes * 60_000);
    const told = await world.pay("inv-1").then(
      () => "paid",
      () => "not yet",
    );
    if (told === "paid") return;
  }
  throw new Error(`no end: ${(await world.row("inv-1")).state}`);
}

const LOST: Fault = { kind: "lost_response", count: 2 };

interface Point {
  readonly at: string;
  readonly fault: Fault | null;
  readonly leaves: string;
  readonly charges: number;
}

const POINTS: readonly Point[] = [
  { at: "committed", fault: null, leaves: "key_minted", charges: 0 },
  { at: "read", fault: null, leaves: "key_minted", charges: 0 },
  { at: "admitted", fault: null, leaves: "in_flight", charges: 0 },
  { at: "answered", fault: null, leaves: "in_flight", charges: 1 },
  { at: "stored", fault: null, leaves: "recorded", charges: 1 },
  { at: "answered", fault: LOST, leaves: "in_flight", charges: 1 },
  { at: "doubted", fault: LOST, leaves: "reconciling", charges: 1 },
  { at: "doubted", fault: { kind: "error_before" }, leaves: "reconciling", charges: 0 },
  { at: "looked", fault: LOST, leaves: "reconciling", charges: 1 },
];

describe("kill -9", () => {
  it.each(POINTS)(
    "behavior: $at ($fault.kind): $leaves",
    async ({ at, fault, leaves, charges }) => {
      if (fault !== null) world.fault(fault);
      await killedAt(at);
      expect((await world.row("inv-1")).state).toBe(leaves);
      expect(await world.charges()).toHaveLength(charges);
      await next();
      expect(await world.charges()).toEqual(["500 usd"]);
      expect((await world.row("inv-1")).state).toBe("recorded");
      expect(new Set(world.keysSent()).size).toBe(1);
    },
  );

  it("behavior: before the minting is committed there is nothing, and nothing was sent", async () => {
    await killedAt("minted");
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "not_found" });
    expect(world.keysSent()).toEqual([]);
    await next();
    expect(await world.charges()).toEqual(["500 usd"]);
  });

  it("behavior: while the provider works on it", async () => {
    world.fault({ kind: "delay", delayMs: 400 });
    const worker = start("none");
    await expect.poll(() => world.keysSent().length, WAIT).toBe(1);
    worker.kill("SIGKILL");
    await once(worker, "exit");
    expect((await world.row("inv-1")).state).toBe("in_flight");
    await expect.poll(() => world.charges(), WAIT).toHaveLength(1);
    await next();
    expect(await world.charges()).toEqual(["500 usd"]);
    expect(world.keysSent()).toHaveLength(1);
  });
});
