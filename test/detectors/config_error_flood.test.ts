/**
 * Rule 7 of the field list: a flood of equal symptoms is one configuration finding. Judged as the
 * daemon judges, since the flood is one of incidents and not of rows.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import type { Finding } from "../../src/core/finding.ts";
import { closeByPerson } from "../../src/incident/act.ts";
import { listIncidents } from "../../src/incident/present.ts";
import type { IncidentJson } from "../../src/incident/present.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { ALL_JUDGED, makeFinding } from "../incident/make.ts";
import { emptyTables } from "../support/db.ts";
import { judgeChanged } from "../support/judge-changed.ts";
import { testSettings } from "../support/settings.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

// The detector's threshold.
const MANY = 100;
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

/** Records these and nothing else, as a run that judged all operations. */
async function run(findings: readonly Finding[]): Promise<void> {
  const judged = { ...ALL_JUDGED, subjects: new Set<string>() };
  const input = { findings, judged, now: world.now };
  await recordFindings({ pool: world.pool, settings: testSettings() }, input);
}

/** Judges the sources and records it; gives the floods. */
async function floods(): Promise<readonly IncidentJson[]> {
  const findings = await world.judgeSources();
  const judged = { ...ALL_JUDGED, operations: new Set<string>() };
  const input = { findings, judged, now: world.now };
  await recordFindings({ pool: world.pool, settings: testSettings() }, input);
  const filter = { codes: ["config_error"], statuses: ["open"] } as const;
  return listIncidents(world.pool, filter, world.now);
}

function many(n: number, change: Partial<Finding>, from = 0): Finding[] {
  return Array.from({ length: n }, (_, index) => {
    const name = String(from + index);
    return makeFinding({
      ...{ code: "amount_mismatch", basis: "amount", evidence: { factor: "100" } },
      ...{ subject: `op-${name}`, operationId: `op-${name}`, charges: [`ch_${name}`] },
      ...change,
    });
  });
}

async function kinds(): Promise<string[]> {
  const found = await world.pool.query<{ kind: string }>(
    "select kind from tallyd.outbox order by message_id",
  );
  return found.rows.map((row) => row.kind);
}

test("default: a table in another unit is one fault, told once", async () => {
  await run(many(MANY - 1, {}));
  expect(await floods()).toEqual([]);
  await run(many(MANY, {}));
  const [flood] = await floods();
  expect(flood).toMatchObject({
    ...{ severity: "critical", basis: "flood", scope: "platform/test" },
    evidence: { count: MANY, code: "amount_mismatch", factor: "100" },
  });
  expect(flood?.summary).toContain("100 open incidents of amount_mismatch with the factor 100");
  expect(flood?.advice).toContain("map intents.columns.amount to minor units");
  expect(await floods()).toHaveLength(1);
  expect(await kinds()).toEqual(["storm", "opened", "opened"]);
});

test("behavior: further ones are told together, every quarter of an hour, and none is lost", async () => {
  await run(many(MANY, {}));
  await floods();
  const before = await kinds();
  for (let n = 1; n <= 3; n += 1) await run(many(MANY + n, {}));
  expect((await kinds()).slice(before.length)).toEqual(["flood"]);
  const [flood] = (
    await world.pool.query<{ text: string; wait: number }>(
      `select payload ->> 'text' as text, extract(epoch from due_at - created_at)::integer as wait
         from tallyd.outbox
        where kind = 'flood'`,
    )
  ).rows;
  expect(flood?.text).toContain("3 more of a flood that was told before, 3 of them critical");
  expect(flood?.wait).toBe(900);
  expect(await listIncidents(world.pool, { codes: ["amount_mismatch"] }, world.now)).toHaveLength(
    MANY + 3,
  );
  // Another trouble is told at once, as ever.
  const other = makeFinding({ subject: "other", operationId: "other", charges: ["ch_x"] });
  await run([...many(MANY + 3, {}), other]);
  expect((await kinds()).at(-1)).toBe("opened");
});

test("behavior: it ends when the fault is corrected", async () => {
  await run(many(MANY, {}));
  await floods();
  await run(many(MANY - 1, {}));
  expect(await floods()).toEqual([]);
});

test("behavior: who says that it is no fault hears of each again", async () => {
  await run(many(MANY, {}));
  const [flood] = await floods();
  await closeByPerson(world.pool, {
    ...{ id: flood?.id ?? "", actor: "sam", note: "they are real", now: world.now },
  });
  expect(await floods()).toEqual([]);
  await run(many(MANY + 1, {}));
  expect((await kinds()).at(-1)).toBe("opened");
});

test.each<[string, Partial<Finding>]>([
  ["paid twice", { code: "double_charge", basis: "key" }],
  ["failed but paid", { code: "state_drift", basis: "failed_but_paid" }],
  ["disputed", { code: "dispute_opened" }],
  ["remarks", { severity: "info" }],
])("behavior: what is %s is never a fault of configuration", async (_name, change) => {
  await run(many(MANY, change));
  expect(await floods()).toEqual([]);
});

test("behavior: different signs are different faults", async () => {
  await run([
    ...many(MANY - 1, {}),
    ...many(MANY - 1, { evidence: { factor: "1000" } }, 1_000),
    ...many(MANY - 1, { scope: "acct_1/test" }, 2_000),
    ...many(MANY - 1, { basis: "currency" }, 3_000),
  ]);
  expect(await floods()).toEqual([]);
});

test("default: rows that are nowhere to be found, by the real detectors", async () => {
  for (let n = 0; n < MANY; n += 1) {
    await world.charge({ id: `ch_${String(n)}`, amount: 1_000 + n });
  }
  await judgeChanged(world, testSettings());
  expect(await floods()).toMatchObject([
    { severity: "warning", evidence: { code: "orphan_charge", count: MANY } },
  ]);
});
