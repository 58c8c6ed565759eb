// Goal: what a person did to an incident can be taken back, and the incident is then as any open
// one. Method: real PostgreSQL, runs played with the times that the test gives.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import type { Finding } from "../../src/core/finding.ts";
import { incidentId } from "../../src/core/incident.ts";
import { acknowledge, closeByPerson, mute, reopenByPerson } from "../../src/incident/act.ts";
import { showIncident } from "../../src/incident/present.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { remindDue } from "../../src/incident/remind.ts";
import { testSettings } from "../support/settings.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import { ALL_JUDGED, at, makeFinding } from "./make.ts";

let db: TestDb;
beforeAll(async () => {
  db = await createTestDb();
});
afterAll(async () => {
  await db.close();
});
beforeEach(async () => {
  await emptyTables(db.pool, [
    "tallyd.incident",
    "tallyd.incident_entry",
    "tallyd.outbox",
    "tallyd.reminder",
  ]);
  await run([makeFinding()], 0);
});

const MINUTE = 60;
const settings = testSettings({
  pagerDuty: { routingKey: "0123456789abcdef0123456789abcdef", apiBase: "http://127.0.0.1:1" },
});
const { remindersMs } = settings;
const ID = incidentId("double_charge", "ref:platform/test:order-1");

async function run(findings: readonly Finding[], seconds: number): Promise<void> {
  const input = { findings, judged: ALL_JUDGED, now: at(seconds) };
  await recordFindings({ pool: db.pool, settings }, input);
}

const person = (seconds: number, note: string | null = null) => ({
  ...{ id: ID, actor: "sam", note, now: at(seconds) },
  programs: settings,
});

async function pages(): Promise<string[]> {
  const found = await db.pool.query<{ kind: string }>(
    "select kind from tallyd.outbox where channel = 'pagerduty' order by message_id",
  );
  return found.rows.map((row) => row.kind);
}

test.each([
  ["acknowledgement", () => acknowledge(db.pool, person(60)), "reopened"],
  ["mute", () => mute(db.pool, { ...person(60), until: null }), "unmuted"],
  ["closing", () => closeByPerson(db.pool, person(60)), "reopened"],
])("default: a person's %s is taken back", async (_name, act, step) => {
  await act();
  const back = { ...person(10 * MINUTE, "that was the wrong one"), remindersMs };
  expect(await reopenByPerson(db.pool, back)).toMatchObject({ status: "open", closedBy: null });
  const shown = await showIncident(db.pool, ID, at(11 * MINUTE));
  expect(shown?.history.at(-1)).toMatchObject({
    ...{ step, actor: "sam", note: "that was the wrong one" },
  });
  expect((await pages()).at(-1)).toBe("trigger");
  // It is nagged about like any other, from now on.
  expect(await remindDue({ pool: db.pool, settings }, at(39 * MINUTE))).toMatchObject({
    reminded: 0,
  });
  expect(await remindDue({ pool: db.pool, settings }, at(40 * MINUTE))).toMatchObject({
    reminded: 1,
  });
});

test("behavior: the same facts again are no news, and facts end it as ever", async () => {
  await closeByPerson(db.pool, person(60));
  await reopenByPerson(db.pool, person(120));
  await run([makeFinding()], 180);
  expect((await showIncident(db.pool, ID, at(181)))?.status).toBe("open");
  await run([], 240);
  expect(await showIncident(db.pool, ID, at(241))).toMatchObject({
    ...{ status: "closed", closedBy: "facts" },
  });
});

test("behavior: an acknowledgement that is taken back does not make it younger", async () => {
  await acknowledge(db.pool, person(60));
  await reopenByPerson(db.pool, { ...person(10 * MINUTE), remindersMs });
  await remindDue({ pool: db.pool, settings }, at(40 * MINUTE));
  const found = await db.pool.query<{ text: string }>(
    "select payload ->> 'text' as text from tallyd.outbox where kind = 'reminded'",
  );
  expect(found.rows[0]?.text).toContain("still open after 40 min");
});

test("error: what facts closed, and what is open, cannot be taken back", async () => {
  await expect(reopenByPerson(db.pool, person(60))).rejects.toThrow(/is open/);
  await run([], 120);
  await expect(reopenByPerson(db.pool, person(180))).rejects.toThrow(/closed by facts/);
  const unknown = { ...person(180), id: "inc_none" };
  await expect(reopenByPerson(db.pool, unknown)).rejects.toThrow(/no incident/);
});
