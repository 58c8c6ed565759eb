// Goal: criticals that nobody has acknowledged are told again, with what has changed, and nothing
// else is. Method: real PostgreSQL, runs played with the times that the test gives.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { changesSince, spanWords } from "../../src/alert/reminder.ts";
import type { Finding } from "../../src/core/finding.ts";
import { incidentId } from "../../src/core/incident.ts";
import { acknowledge, closeByPerson, mute } from "../../src/incident/act.ts";
import { showIncident } from "../../src/incident/present.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { REMIND_BATCH_MAX, remindDue } from "../../src/incident/remind.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import { ALL_JUDGED, at, makeFinding, makeNumbered } from "./make.ts";

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
});

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const settings = {
  slackWebhookUrl: "http://127.0.0.1:1/hook",
  slackCriticalWebhookUrl: null,
  publicUrl: null,
  remindersMs: [30 * MINUTE * 1_000, 2 * HOUR * 1_000, DAY * 1_000],
};
const ID = incidentId("double_charge", "ref:platform/test:order-1");

async function run(findings: readonly Finding[], seconds: number): Promise<void> {
  const input = { findings, judged: ALL_JUDGED, now: at(seconds) };
  await recordFindings({ pool: db.pool, settings }, input);
}

/** Reminds once a minute from one time to another; gives the minutes at which it did. */
async function remindedAt(from: number, to: number): Promise<number[]> {
  const minutes: number[] = [];
  for (let second = from; second <= to; second += MINUTE) {
    const { reminded } = await remindDue({ pool: db.pool, settings }, at(second));
    if (reminded > 0) minutes.push(second / MINUTE);
  }
  return minutes;
}

interface Row {
  readonly kind: string;
  readonly severity: string;
  readonly incident_id: string | null;
  readonly text: string;
}

async function outbox(): Promise<readonly Row[]> {
  const found = await db.pool.query<Row>(
    `select kind, severity, incident_id, payload ->> 'text' as text
       from tallyd.outbox
      order by message_id`,
  );
  return found.rows;
}

async function left(): Promise<number> {
  return (await db.pool.query("select from tallyd.reminder")).rowCount ?? 0;
}

const person = (seconds: number) => ({ id: ID, actor: "sam", note: null, now: at(seconds) });

describe("the ladder", () => {
  test("default: after half an hour, after two hours, then daily", async () => {
    await run([makeFinding()], 0);
    expect(await remindedAt(0, 3 * HOUR)).toEqual([30, 120]);
    expect(await remindedAt(DAY - MINUTE, DAY + MINUTE)).toEqual([1440]);
    expect(await remindedAt(2 * DAY - MINUTE, 2 * DAY + MINUTE)).toEqual([2880]);
    const [, first, , third] = await outbox();
    expect(first).toMatchObject({ kind: "reminded", severity: "critical", incident_id: ID });
    expect(first?.text).toMatch(
      /^Critical, still open after 30 min: double charge, 12.50 USD at risk\n/,
    );
    expect(first?.text).toContain("Nothing has changed.");
    expect(third?.text).toMatch(/^Critical, still open after 24 h: /);
    const shown = await showIncident(db.pool, ID, at(2 * DAY + HOUR));
    expect(shown?.history.map((entry) => entry.step)).toEqual([
      "opened",
      ...["reminded", "reminded", "reminded", "reminded"],
    ]);
  });

  test("behavior: waits that passed while nothing ran are one reminder", async () => {
    await run([makeFinding()], 0);
    expect(await remindedAt(3 * DAY, 3 * DAY + HOUR)).toEqual([3 * 1440]);
  });

  test("behavior: news start it anew, and it says what has changed since", async () => {
    await run([makeFinding()], 0);
    const third = makeFinding({ charges: ["ch_1", "ch_2", "ch_3"], amountAtRisk: 2500n });
    await run([third], 20 * MINUTE);
    expect(await remindedAt(21 * MINUTE, 49 * MINUTE)).toEqual([]);
    await run([makeFinding({ amountAtRisk: 500n })], 40 * MINUTE);
    expect(await remindedAt(50 * MINUTE, 50 * MINUTE)).toEqual([50]);
    const text = (await outbox()).at(-1)?.text ?? "";
    expect(text).toContain("still open after 50 min");
    expect(text).toContain("1 charge fewer, 2 now");
    expect(text).toContain("money at risk fell from 25.00 USD to 5.00 USD");
    expect(text).toContain("found once more");
    // What this message said is what the next one compares with.
    expect(await remindedAt(51 * MINUTE, 140 * MINUTE)).toEqual([140]);
    expect((await outbox()).at(-1)?.text).toContain("Nothing has changed.");
  });

  test("behavior: off means nobody is reminded", async () => {
    await run([makeFinding()], 0);
    const off = { ...settings, remindersMs: [] };
    expect(await remindDue({ pool: db.pool, settings: off }, at(DAY))).toEqual({
      reminded: 0,
      dropped: 0,
    });
    expect(await outbox()).toHaveLength(1);
  });
});

test("behavior: several replicas remind once", async () => {
  await run([makeFinding()], 0);
  const done = await Promise.all(
    [1, 2, 3, 4].map(() => remindDue({ pool: db.pool, settings }, at(30 * MINUTE))),
  );
  expect(done.reduce((sum, { reminded }) => sum + reminded, 0)).toBe(1);
  expect((await outbox()).map((row) => row.kind)).toEqual(["opened", "reminded"]);
});

describe("who is not reminded", () => {
  test.each([
    ["acknowledged", () => acknowledge(db.pool, person(60))],
    ["closed by a person", () => closeByPerson(db.pool, person(60))],
    ["closed by facts", () => run([], 60)],
    ["milder", () => run([makeFinding({ severity: "warning" })], 60)],
    ["muted until it gets worse", () => mute(db.pool, { ...person(60), until: null })],
  ])("behavior: %s", async (_name, end) => {
    await run([makeFinding()], 0);
    await end();
    expect(await remindedAt(30 * MINUTE, 40 * MINUTE)).toEqual([]);
    expect(await left()).toBe(0);
    expect((await outbox()).map((row) => row.kind)).not.toContain("reminded");
  });

  test("behavior: a warning is not", async () => {
    await run([makeFinding({ severity: "warning" })], 0);
    expect(await remindedAt(30 * MINUTE, 31 * MINUTE)).toEqual([]);
  });

  test("behavior: a mute that has run out is no mute", async () => {
    await run([makeFinding()], 0);
    await mute(db.pool, { ...person(60), until: at(5 * HOUR) });
    expect(await remindedAt(30 * MINUTE, 6 * HOUR)).toEqual([300]);
  });

  test("behavior: an acknowledged one that gets worse is open again", async () => {
    await run([makeFinding()], 0);
    await acknowledge(db.pool, person(60));
    await run([makeFinding({ charges: ["ch_1", "ch_2", "ch_3"], amountAtRisk: 2500n })], HOUR);
    expect(await remindedAt(HOUR, 2 * HOUR)).toEqual([90]);
  });
});

describe("many at once", () => {
  const many = (n: number) => Array.from({ length: n }, (_, index) => makeNumbered(index));

  test("default: a handful is told alone, more are one message", async () => {
    await run(many(4), 0);
    expect(await remindedAt(30 * MINUTE, 31 * MINUTE)).toEqual([30]);
    const last = (await outbox()).slice(4);
    expect(last).toHaveLength(1);
    expect(last[0]).toMatchObject({ kind: "reminders", severity: "critical", incident_id: null });
    expect(last[0]?.text).toContain("4 critical incidents are open and not acknowledged");
    expect(last[0]?.text).toContain("open for 30 min; operation 3 was charged twice");
  });

  test("behavior: thousands are one message, and none is forgotten", async () => {
    const n = REMIND_BATCH_MAX * 2 + 5;
    await run(many(n), 0);
    const done = await remindDue({ pool: db.pool, settings }, at(30 * MINUTE));
    expect(done.reminded).toBe(n);
    const rows = (await outbox()).filter((row) => row.kind === "reminders");
    expect(rows).toHaveLength(1);
    expect(rows[0]?.text).toContain(`${String(n)} critical incidents are open`);
    expect(await left()).toBe(n);
  });
});

test.each([
  [0, "0 min"],
  [59 * MINUTE, "59 min"],
  [HOUR, "1 h"],
  [47 * HOUR + 5 * MINUTE, "47 h 5 min"],
  [2 * DAY, "2 days"],
  [3 * DAY + 4 * HOUR, "3 days 4 h"],
])("behavior: %d seconds are %s", (seconds, words) => {
  expect(spanWords(seconds * 1_000)).toBe(words);
});

test("behavior: money in another currency is not compared", () => {
  const { charges, amountAtRisk } = makeFinding();
  const now = { charges, amountAtRisk, currency: "usd", count: 1 };
  const told = { charges: 2, amountAtRisk: "5", currency: "eur", count: 1 };
  expect(changesSince(told, now)).toEqual(["money at risk is 12.50 USD now"]);
});
