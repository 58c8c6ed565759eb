/**
 * Goal: whatever workers, faults, crashes and clocks do, an operation has at most one effect, a
 * doubtful end says that it is one, and nothing is lost.
 * Method: random lives on a real database against the stand-in; the same faults strike a naive
 * writer; in the end tallyd judges both.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";

import { readIntent } from "../../src/ledger/ledger.ts";
import { openE2e } from "../e2e/world.ts";
import type { E2e } from "../e2e/world.ts";
import { chargesOf, life, live, liveNaively } from "./interleavings.ts";
import type { Stage } from "./interleavings.ts";
import { clientOf } from "./client.ts";

// A life takes a tenth of a second; tallyd reads back two days at its first pass.
const LIVES = 40;
const BEGIN_AGO_MS = 46 * 3_600_000;

let world: E2e;
let stage: Stage;

beforeAll(async () => {
  world = await openE2e();
  await world.fresh("own");
  stage = { world, stripe: clientOf(world.stripe.url), intents: [], naive: [] };
});
afterAll(() => world.close());

/** Nobody is awake: the row must not deny what happened, nor claim what did not. */
async function isTrue(intentId: string): Promise<void> {
  const charges = chargesOf(stage, intentId);
  const { state } = await readIntent({ db: world.pool }, intentId);
  expect(charges).toBeLessThanOrEqual(1);
  const allowed =
    charges === 1
      ? ["recorded", "in_flight", "reconciling"]
      : ["key_minted", "in_flight", "reconciling", "failed_retryable", "failed_terminal"];
  expect(allowed).toContain(state);
}

it("behavior: at most one effect, every doubt is one, nothing is lost; tallyd agrees", async () => {
  const { control } = world.stripe;
  await fc.assert(
    fc.asyncProperty(life, async (one) => {
      control.advance(Date.now() - BEGIN_AGO_MS - control.now());
      await live(stage, one, isTrue);
      const intentId = stage.intents.at(-1)!;
      const { state } = await readIntent({ db: world.pool }, intentId);
      expect(state).toBe(chargesOf(stage, intentId) === 1 ? "recorded" : "failed_terminal");
      control.advance(Date.now() - BEGIN_AGO_MS - control.now());
      await liveNaively(stage, one);
    }),
    { numRuns: LIVES, endOnFailure: true },
  );
  control.advance(Date.now() - control.now());

  const outcome = await world.once();
  const told = outcome.incidents.filter((one) => one.status !== "closed");
  const about = (id: string) => told.filter((one) => one.intents.includes(id));
  const ledgers = stage.intents.flatMap(about).map((one) => `${one.code} ${one.intents.join()}`);
  expect(ledgers).toEqual([]);
  const doubles = stage.naive.filter((id) => chargesOf(stage, id) > 1);
  expect(doubles.length).toBeGreaterThan(LIVES / 8);
  const caught = stage.naive.filter((id) => about(id).some((one) => one.code === "double_charge"));
  expect(caught).toEqual(doubles);
});
