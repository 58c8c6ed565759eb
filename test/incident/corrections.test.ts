// Goal: an alert that turns out wrong is corrected once, in words; one that is settled is only
// over. Method: real PostgreSQL, facts placed and judged as the daemon does.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { emptyTables } from "../support/db.ts";
import { judgeChanged } from "../support/judge-changed.ts";
import { testSettings } from "../support/settings.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await world.reset();
  await emptyTables(world.pool, [
    "tallyd.incident",
    "tallyd.incident_entry",
    "tallyd.outbox",
    "tallyd.reminder",
  ]);
});
afterAll(() => world.close());

const SECOND = 1_000;
const HOUR = 3_600_000;

async function judge(seconds: number): Promise<void> {
  await judgeChanged(world, testSettings(), { afterMs: seconds * SECOND });
}

/** The messages so far: `word: its second line`. */
async function told(): Promise<string[]> {
  const found = await world.pool.query<{ kind: string; text: string }>(
    "select kind, payload ->> 'text' as text from tallyd.outbox order by message_id",
  );
  return found.rows.map(({ kind, text }) => `${kind}: ${text.split("\n")[1] ?? ""}`);
}

test("default: late rows show that a double charge was two purchases", async () => {
  const same = { amount: 700, customer: "cus_4", purpose: "top-up" };
  await world.charge({ id: "ch_1", ...same, ageMs: HOUR });
  await world.charge({ id: "ch_2", ...same, ageMs: HOUR - 20 * SECOND });
  await judge(0);
  expect((await told()).filter((line) => line.includes("2 alike charges"))).toHaveLength(1);
  // The transactions that hold the rows were open all the time.
  await world.intent({ id: "L1", charge: "ch_1", amount: 700, reference: "o1", ageMs: HOUR });
  await world.intent({ id: "L2", charge: "ch_2", amount: 700, reference: "o2", ageMs: HOUR });
  await judge(60);
  await judge(120);
  const corrections = (await told()).filter((line) => line.startsWith("corrected"));
  expect(corrections).toContain("corrected: ch_1, ch_2 turned out to be different purchases.");
  expect(new Set(corrections).size).toBe(corrections.length);
});

test("behavior: charges under one reference that turn out to have rows of different ones", async () => {
  await world.intent({ id: "L1", charge: "ch_1", reference: "o1", ageMs: HOUR });
  await world.charge({ id: "ch_1", ageMs: HOUR });
  await world.charge({ id: "ch_2", reference: "o1", ageMs: HOUR - 20 * SECOND });
  await judge(0);
  expect(await told()).toEqual(["opened: o1 was charged 2 times within 20 s"]);
  await world.intent({ id: "L2", charge: "ch_2", reference: "o2", ageMs: HOUR });
  await judge(60);
  const [, second] = await told();
  expect(second).toBe("corrected: ch_1, ch_2 turned out to be different purchases.");
});

test("behavior: a refund settles it, and nothing is corrected", async () => {
  await world.intent({ id: "L1", charge: "ch_1", reference: "o1", ageMs: HOUR });
  await world.charge({ id: "ch_1", ageMs: HOUR });
  await world.charge({ id: "ch_2", reference: "o1", ageMs: HOUR - 20 * SECOND });
  await judge(0);
  await world.refund({ id: "re_1", charge: "ch_2", amount: 1000 });
  await judge(60);
  expect((await told())[1]).toBe("closed: The facts no longer show it. It was:");
});

test("behavior: a payment that its provider told of late was no invention of the row", async () => {
  await world.intent({ id: "L1", charge: "ch_1", ageMs: HOUR });
  await judge(0);
  expect(await told()).toEqual([
    "opened: L1 is recorded with ch_1, which the provider does not know",
  ]);
  await world.charge({ id: "ch_1", ageMs: HOUR });
  await judge(60);
  expect((await told())[1]).toBe(
    "corrected: ch_1 turned out to exist: its provider told of it late.",
  );
});

test("behavior: a row that is corrected was wrong, not the alert", async () => {
  await world.intent({ id: "L1", charge: "ch_1", ageMs: HOUR });
  await judge(0);
  await world.intent({ id: "L1", charge: null, state: "failed_terminal", ageMs: HOUR });
  await judge(60);
  expect((await told()).map((line) => line.split(":")[0])).toEqual(["opened"]);
});

test("behavior: a payment that failed late makes the drift it caused a wrong alert", async () => {
  const row = { id: "L1", charge: "ch_1", state: "failed_terminal", ageMs: HOUR };
  await world.intent(row);
  await world.charge({ id: "ch_1", ageMs: HOUR });
  await judge(0);
  expect(await told()).toEqual(["opened: L1 is failed_terminal, but ch_1 succeeded"]);
  await world.charge({ id: "ch_1", status: "failed", ageMs: HOUR });
  await judge(60);
  expect((await told())[1]).toBe(
    "corrected: ch_1 is no longer a payment: its provider took it back.",
  );
});
