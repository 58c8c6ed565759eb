// Goal: thousands of findings of one pass end in a handful of messages, in bounded batches, and
// every one in the list. Method: real PostgreSQL, charges that were placed, judged as they are due.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import type { Look } from "../../src/core/finding.ts";
import { judgeDue } from "../../src/detect/judge.ts";
import type { JudgeDeps, LookAnswer } from "../../src/detect/judge.ts";
import { loadDetectors } from "../../src/detect/load.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { emptyTables } from "../support/db.ts";
import { testSettings } from "../support/settings.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;
const detectors = loadDetectors();
const settings = testSettings();

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

/** Charges without rows, placed and due, each alone in its operation. */
async function orphans(n: number): Promise<void> {
  const { pool, now } = world;
  await pool.query(
    `with made as (
       insert into tallyd.charge (scope, charge_id, rail, amount, amount_captured, currency, status,
                                  captured, created_at, version_at, version_rank)
       select 'platform/test', 'ch_' || i, 'stripe', 1000 + i, 1000 + i, 'usd', 'succeeded', true,
              $2::timestamptz - interval '1 hour', $2, 1
         from generate_series(1, $1::integer) as i
       returning scope, charge_id
     ), placed as (
       insert into tallyd.charge_match (scope, charge_id, operation_id)
       select scope, charge_id, 'charge:' || scope || ':' || charge_id from made
       returning operation_id
     )
     insert into tallyd.due (operation_id, due_at)
     select operation_id, $2 from placed`,
    [n, now],
  );
  await pool.query("analyze tallyd.charge, tallyd.charge_match");
}

/** Judges until nothing is due; gives the sizes of the batches and the looks that were made. */
async function judgeAll(
  look: (look: Look) => LookAnswer,
): Promise<{ readonly batches: number[]; readonly looks: number; readonly unreadable: number }> {
  const { pool, now } = world;
  const batches: number[] = [];
  let looks = 0;
  const deps: JudgeDeps = {
    ...{ pool, detectors, context: { settings, localAmountMax: null } },
    now: () => Promise.resolve(now),
    look: (one) => {
      looks += 1;
      return Promise.resolve(look(one));
    },
    blindScopes: () => Promise.resolve(new Set<string>()),
    record: (input) => {
      batches.push(input.findings.length);
      return recordFindings({ pool, settings }, input);
    },
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  };
  let unreadable = 0;
  for (;;) {
    const judged = await judgeDue(deps);
    unreadable += judged.unreadable;
    if (!judged.more) return { batches, looks, unreadable };
  }
}

function nothing(): void {
  // Nobody reads it.
}

async function count(table: "incident" | "outbox"): Promise<number> {
  return (await world.pool.query(`select from tallyd.${table}`)).rowCount ?? 0;
}

test("default: thousands in one pass: a handful of messages, small batches, nothing lost", async () => {
  await orphans(3_000);
  const { batches, looks, unreadable } = await judgeAll(() => "absent");
  expect(unreadable).toBe(0);
  expect(await count("incident")).toBe(3_000);
  expect(await count("outbox")).toBeLessThanOrEqual(10);
  // What is held at once does not grow with the storm.
  expect(Math.max(...batches)).toBeLessThanOrEqual(500);
  // One statement looks for the rows of a hundred charges.
  expect(looks).toBe(30);
  const rows = await world.pool.query<{ total: number }>(
    "select sum((payload -> 'digest' ->> 'total')::integer)::integer as total from tallyd.outbox",
  );
  expect(rows.rows[0]?.total).toBe(3_000);
}, 120_000);

test("behavior: one row among a hundred is found, and keeps only its own charge unspoken", async () => {
  await orphans(50);
  const { unreadable } = await judgeAll((look) =>
    look.source === "local" && look.chargeIds.includes("ch_7") ? "found" : "absent",
  );
  expect(unreadable).toBe(0);
  expect(await count("incident")).toBe(49);
});

test("behavior: a table that cannot be read keeps all of them unspoken", async () => {
  await orphans(150);
  const { looks, unreadable } = await judgeAll(() => "unreadable");
  expect({ looks, unreadable }).toEqual({ looks: 2, unreadable: 150 });
  expect(await count("incident")).toBe(0);
});
