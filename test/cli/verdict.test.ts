// Goal: the exit code says what is open and whether tallyd sees at all. Method: incidents in a real
// database.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { verdictOf } from "../../src/cli/verdict.ts";
import { mute } from "../../src/incident/act.ts";
import { recordFindings } from "../../src/incident/record.ts";
import type { Finding } from "../../src/core/finding.ts";
import { incidentId } from "../../src/core/incident.ts";
import { ALL_JUDGED, at, makeFinding } from "../incident/make.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb, emptyTables } from "../support/db.ts";

let db: TestDb;
beforeAll(async () => {
  db = await createTestDb();
});
afterAll(async () => {
  await db.close();
});
beforeEach(async () => {
  await emptyTables(db.pool, ["tallyd.incident", "tallyd.incident_entry", "tallyd.outbox"]);
});

const SILENT = makeFinding({
  ...{ code: "coverage_gap", subject: "webhooks:platform/test", operationId: null },
  ...{ basis: "webhooks_silent", intents: [], charges: [], amountAtRisk: null, currency: null },
  summary: "No webhook arrived for 7 events of platform/test",
});
const SKEW = { ...SILENT, code: "config_error", basis: "clock_skew", severity: "warning" } as const;

async function verdict(findings: readonly Finding[], seconds = 1) {
  const settings = { slackWebhookUrl: null, slackCriticalWebhookUrl: null, publicUrl: null };
  const input = { findings, judged: ALL_JUDGED, now: at(0) };
  await recordFindings({ pool: db.pool, settings }, input);
  return verdictOf({ pool: db.pool, now: () => Promise.resolve(at(seconds)) }, []);
}

test("default: 0, 3, and 4 while a gap of coverage is open", async () => {
  expect((await verdict([])).exitCode).toBe(0);
  expect((await verdict([makeFinding(), SKEW])).exitCode).toBe(3);
  const blind = await verdict([makeFinding(), SILENT]);
  expect(blind.exitCode).toBe(4);
  expect(blind.lines.join("\n")).toMatch(/NOT SEEN No webhook arrived for 7 events.*show inc_/);
  expect((await verdict([])).exitCode).toBe(0);
});

test("behavior: a gap that is muted is known, one that is milder hides nothing", async () => {
  await verdict([SILENT]);
  const act = { id: incidentId(SILENT.code, SILENT.subject), actor: "sam", note: null, now: at(0) };
  await mute(db.pool, { ...act, until: at(60) });
  expect((await verdict([SILENT])).exitCode).toBe(0);
  expect((await verdict([SILENT], 61)).exitCode).toBe(4);
  expect((await verdict([{ ...SILENT, severity: "warning" }], 61)).exitCode).toBe(3);
});
