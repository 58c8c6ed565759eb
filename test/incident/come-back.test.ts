// Goal: what was kept quiet (a mute, a return while flapping) is told when its time has come,
// without a run that finds it again. Method: real PostgreSQL, times that the test gives.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { Finding } from "../../src/core/finding.ts";
import { incidentId } from "../../src/core/incident.ts";
import { acknowledge, mute } from "../../src/incident/act.ts";
import { comeBack } from "../../src/incident/come-back.ts";
import { showIncident } from "../../src/incident/present.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { remindDue } from "../../src/incident/remind.ts";
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
    ...["tallyd.incident", "tallyd.incident_entry", "tallyd.outbox", "tallyd.reminder"],
  ]);
});

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const settings = {
  slackWebhookUrl: "http://127.0.0.1:1/hook",
  slackCriticalWebhookUrl: null,
  publicUrl: null,
  remindersMs: [30 * MINUTE * 1_000, 2 * HOUR * 1_000],
  webhook: { url: "http://127.0.0.1:1/", secrets: [] },
  pagerDuty: { routingKey: "0".repeat(32), apiBase: "http://127.0.0.1:1" },
};
const ID = incidentId("double_charge", "ref:platform/test:order-1");

async function run(findings: readonly Finding[], seconds: number): Promise<void> {
  const input = { findings, judged: ALL_JUDGED, now: at(seconds) };
  await recordFindings({ pool: db.pool, settings }, input);
}

const person = (id: string, seconds: number) => {
  return { id, actor: "sam", note: null, now: at(seconds), programs: settings };
};

async function back(seconds: number, remindersMs: readonly number[] = settings.remindersMs) {
  return comeBack({ pool: db.pool, settings: { ...settings, remindersMs } }, at(seconds));
}

/** `kind: first line` of each message of a channel. */
async function told(channel = "slack"): Promise<string[]> {
  const found = await db.pool.query<{ kind: string; text: string }>(
    `select kind, payload ->> 'text' as text
       from tallyd.outbox
      where channel = $1
      order by message_id`,
    [channel],
  );
  return found.rows.map(({ kind, text }) => `${kind}: ${text.split("\n")[0] ?? ""}`);
}

const kinds = async (channel: string) => (await told(channel)).map((one) => one.split(":")[0]);

describe("a mute that has run out", () => {
  test("default: one message, PagerDuty and the webhook hear of it, reminders resume", async () => {
    await run([makeFinding()], 0);
    await acknowledge(db.pool, person(ID, 60));
    await mute(db.pool, { ...person(ID, 120), until: at(5 * HOUR) });
    // The acknowledgement had ended the reminders.
    await remindDue({ pool: db.pool, settings }, at(HOUR));
    expect(await back(5 * HOUR - 1)).toEqual({ unmuted: 0, returned: 0 });
    expect(await back(5 * HOUR)).toEqual({ unmuted: 1, returned: 0 });
    expect(await back(5 * HOUR + 60)).toEqual({ unmuted: 0, returned: 0 });
    expect((await told()).slice(1)).toEqual([
      "unmuted: Critical, no longer muted: double charge, 12.50 USD at risk",
    ]);
    expect(await kinds("webhook")).toEqual(["opened", "acknowledged", "muted", "unmuted"]);
    expect(await kinds("pagerduty")).toEqual(["trigger", "acknowledge", "trigger"]);
    const shown = await showIncident(db.pool, ID, at(5 * HOUR));
    expect(shown?.status).toBe("open");
    expect(shown?.history.at(-1)).toMatchObject({
      ...{ step: "unmuted", actor: "tallyd", note: "the mute has run out" },
      at: at(5 * HOUR).toISOString(),
    });
    const { reminded } = await remindDue({ pool: db.pool, settings }, at(5.5 * HOUR));
    expect(reminded).toBe(1);
  });

  test("behavior: told also where reminders are off", async () => {
    await run([makeFinding()], 0);
    await mute(db.pool, { ...person(ID, 1), until: at(HOUR) });
    await back(HOUR, []);
    expect(await kinds("slack")).toEqual(["opened", "unmuted"]);
  });

  test("behavior: a warning is open again and disturbs nobody", async () => {
    await run([makeFinding({ severity: "warning" })], 0);
    await mute(db.pool, { ...person(ID, 1), until: at(HOUR) });
    await back(HOUR);
    expect((await showIncident(db.pool, ID, at(HOUR)))?.status).toBe("open");
    expect(await kinds("slack")).toEqual(["opened"]);
  });

  test("behavior: a mute until it gets worse has no end by time", async () => {
    await run([makeFinding()], 0);
    await mute(db.pool, { ...person(ID, 1), until: null });
    expect(await back(1_000 * HOUR)).toEqual({ unmuted: 0, returned: 0 });
  });

  test("behavior: many at once are one message, and replicas tell it once", async () => {
    const findings = Array.from({ length: 15 }, (_, index) => makeNumbered(index));
    await run(findings, 0);
    for (const { code, subject } of findings) {
      await mute(db.pool, { ...person(incidentId(code, subject), 1), until: at(HOUR) });
    }
    await db.pool.query("update tallyd.outbox set status = 'sent'");
    const done = await Promise.all([back(HOUR), back(HOUR), back(HOUR)]);
    expect(done.reduce((sum, one) => sum + one.unmuted, 0)).toBe(15);
    expect((await told()).slice(1)).toEqual([
      "storm: 15 alerts in one message, 15 of them critical",
    ]);
  });
});

test("behavior: a return that flapping kept quiet is told though nothing finds it again", async () => {
  for (const [index, findings] of [1, 0, 1].entries()) {
    await run(findings === 1 ? [makeFinding()] : [], index * MINUTE);
  }
  expect(await kinds("slack")).toEqual(["opened", "closed"]);
  expect(await back(30 * MINUTE)).toEqual({ unmuted: 0, returned: 0 });
  expect(await back(62 * MINUTE)).toEqual({ unmuted: 0, returned: 1 });
  expect(await back(63 * MINUTE)).toEqual({ unmuted: 0, returned: 0 });
  expect((await told()).at(-1)).toBe(
    "reopened: Critical, back again: double charge, 12.50 USD at risk",
  );
  const { reminded } = await remindDue({ pool: db.pool, settings }, at(93 * MINUTE));
  expect(reminded).toBe(1);
});
