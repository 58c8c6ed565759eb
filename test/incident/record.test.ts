// Goal: from findings to incidents and outbox rows in one transaction: storms, flapping, people's
// words, corrections. Method: real PostgreSQL, runs played with the times that the test gives.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { Finding } from "../../src/core/finding.ts";
import { incidentId } from "../../src/core/incident.ts";
import type { Judged } from "../../src/detect/diff.ts";
import { acknowledge, closeByPerson, mute, reopenByPerson } from "../../src/incident/act.ts";
import { listIncidents, showIncident } from "../../src/incident/present.ts";
import type { Recorded } from "../../src/incident/record.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { countAlarming } from "../../src/store/incident-list.ts";
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
    "tallyd.hook",
    "tallyd.refund",
    "tallyd.charge",
    "tallyd.charge_match",
  ]);
});

const settings = {
  slackWebhookUrl: "http://127.0.0.1:1/hook",
  slackCriticalWebhookUrl: null,
  publicUrl: null,
};
const ID = incidentId("double_charge", "ref:platform/test:order-1");
const THIRD = makeFinding({ charges: ["ch_1", "ch_2", "ch_3"], amountAtRisk: 2500n });

async function run(
  findings: readonly Finding[],
  seconds: number,
  judged: Partial<Judged> = {},
): Promise<Recorded> {
  const input = { findings, judged: { ...ALL_JUDGED, ...judged }, now: at(seconds) };
  return recordFindings({ pool: db.pool, settings }, input);
}

interface Row {
  readonly kind: string;
  readonly channel: string;
  readonly severity: string;
  readonly text: string;
  readonly due_at: Date;
}

/** As if everything due had been delivered. */
async function deliver(seconds: number): Promise<void> {
  await db.pool.query("update tallyd.outbox set status = 'sent', attempts = 1 where due_at <= $1", [
    at(seconds),
  ]);
}

/** The outbox, oldest first. */
async function outbox(): Promise<readonly Row[]> {
  const found = await db.pool.query<Row>(
    `select kind, channel, severity, payload ->> 'text' as text, due_at
       from tallyd.outbox
      order by message_id`,
  );
  return found.rows;
}

async function kinds(): Promise<string[]> {
  return (await outbox()).map((row) => row.kind);
}

async function statusOf(id: string, seconds: number): Promise<string | undefined> {
  return (await showIncident(db.pool, id, at(seconds)))?.status;
}

const person = (seconds: number, note: string | null = null) => ({
  id: ID,
  actor: "sam",
  note,
  now: at(seconds),
});

describe("one trouble, one alert", () => {
  test("default: told once, however often it is found", async () => {
    const first = await run([makeFinding()], 0);
    expect(first).toMatchObject({ found: 1, opened: 1, told: 1 });
    const second = await run([makeFinding()], 10);
    expect(second).toMatchObject({ found: 1, opened: 0, refreshed: 1, told: 0 });
    const [message, ...others] = await outbox();
    expect(others).toEqual([]);
    expect(message).toMatchObject({ kind: "opened", channel: "slack", severity: "critical" });
    expect(message?.text).toContain("Critical: double charge, 12.50 USD at risk");
  });

  test("behavior: the list has the shape of the contract", async () => {
    await run([makeFinding()], 0);
    const [incident] = await listIncidents(db.pool, {}, at(1));
    expect(JSON.parse(JSON.stringify(incident))).toMatchObject({
      id: ID,
      code: "double_charge",
      severity: "critical",
      status: "open",
      basis: "reference",
      rail: "stripe",
      scope: "platform/test",
      operation: "ref:platform/test:order-1",
      intents: ["order-1"],
      charges: ["ch_1", "ch_2"],
      amountAtRisk: "1250",
      currency: "usd",
      firstSeen: "2026-03-02T10:00:00.000Z",
      lastSeen: "2026-03-02T10:00:00.000Z",
      count: 1,
      summary: "order-1 was charged 2 times within 35 s",
      advice: "Refund the excess.",
      evidence: { gapSeconds: 35, keeper: "ch_1" },
    });
    const view = await db.pool.query("select id, operation from tallyd.incident_list");
    expect(view.rows).toEqual([{ id: ID, operation: "ref:platform/test:order-1" }]);
  });

  test("behavior: two replicas that find it at once open and tell it once", async () => {
    await Promise.all([1, 2, 3, 4].map(() => run([makeFinding()], 0)));
    expect(await kinds()).toEqual(["opened"]);
    const [incident] = await listIncidents(db.pool, {}, at(1));
    expect(incident?.count).toBe(4);
  });

  test("behavior: info is kept and not told; no hook means the log", async () => {
    await run([makeNumbered(1, { severity: "info" })], 0);
    expect(await kinds()).toEqual([]);
    const none = { ...settings, slackWebhookUrl: null };
    const input = { findings: [makeNumbered(2)], judged: ALL_JUDGED, now: at(1) };
    await recordFindings({ pool: db.pool, settings: none }, input);
    expect((await outbox()).map((row) => row.channel)).toEqual(["log"]);
  });

  test("behavior: severity picks the hook", async () => {
    const both = { ...settings, slackCriticalWebhookUrl: "http://127.0.0.1:1/critical" };
    const findings = [makeNumbered(1), makeNumbered(2, { severity: "warning" })];
    await recordFindings(
      { pool: db.pool, settings: both },
      { findings, judged: ALL_JUDGED, now: at(0) },
    );
    const rows = await outbox();
    expect(new Set(rows.map((row) => `${row.severity} ${row.channel}`))).toEqual(
      new Set(["critical slack_critical", "warning slack"]),
    );
  });

  test("behavior: text that PostgreSQL refuses does not stop the run", async () => {
    const hostile = "a\0b\uD800c";
    const findings = [
      makeFinding({
        subject: `${hostile}${"x".repeat(3_000)}`,
        summary: hostile.repeat(3_000),
        charges: [hostile],
        evidence: { [hostile]: [{ deep: hostile }] },
      }),
      makeNumbered(1),
    ];
    expect(await run(findings, 0)).toMatchObject({ opened: 2 });
    expect(await run(findings, 5)).toMatchObject({ opened: 0, refreshed: 2 });
  });
});

describe("the end, and back", () => {
  test("default: the end of a critical that was told is told; of a warning it is not", async () => {
    await run([makeFinding(), makeNumbered(1, { severity: "warning" })], 0);
    expect(await run([], 10)).toMatchObject({ closed: 2, told: 1 });
    expect(await kinds()).toEqual(["opened", "opened", "closed"]);
  });

  test("behavior: a refund that fails later reopens with an alert that says so (B29)", async () => {
    await run([makeFinding()], 0);
    await run([], 10);
    await db.pool.query(
      `insert into tallyd.refund (scope, refund_id, charge_id, amount, currency, status,
                                  created_at, version_at, version_rank)
       values ('platform/test', 're_1', 'ch_2', 1250, 'usd', 'failed', $1, $1, 0)`,
      [at(15)],
    );
    await run([makeFinding()], 20);
    const last = (await outbox()).at(-1);
    expect(last?.kind).toBe("reopened");
    expect(last?.text).toContain("refund failed: re_1");
  });

  test("behavior: six flips within the hour are two messages (B41)", async () => {
    for (const [index, findings] of [1, 0, 1, 0, 1, 0].entries()) {
      await run(findings === 1 ? [makeFinding()] : [], index * 300);
    }
    expect(await kinds()).toEqual(["opened", "closed"]);
  });

  test("behavior: what flapping kept quiet is told when it stays", async () => {
    for (const [index, findings] of [1, 0, 1, 0, 1].entries()) {
      await run(findings === 1 ? [makeFinding()] : [], index * 60);
    }
    await run([makeFinding()], 600);
    expect(await kinds()).toEqual(["opened", "closed"]);
    await run([makeFinding()], 3_700);
    await run([makeFinding()], 3_800);
    expect(await kinds()).toEqual(["opened", "closed", "reopened"]);
  });

  test("behavior: a transfer whose block was replaced is corrected", async () => {
    const transfer = { rail: "evm", scope: "eip155:8453", charges: ["eip155:8453:0xaa:1"] };
    await run([makeFinding(transfer)], 0);
    await run([], 10);
    expect(await kinds()).toEqual(["opened", "corrected"]);
    expect((await outbox())[1]?.text).toContain("eip155:8453:0xaa:1 is no longer a payment");
  });

  test("behavior: a late row corrects a told orphan once, in words", async () => {
    const orphan = makeFinding({
      code: "orphan_charge",
      subject: "charge:platform/test:ch_1",
      operationId: "charge:platform/test:ch_1",
      intents: [],
      charges: ["ch_1"],
    });
    await run([orphan], 0);
    await db.pool.query(
      `insert into tallyd.charge (scope, charge_id, rail, amount, currency, status, created_at,
                                  version_at, version_rank)
       values ('platform/test', 'ch_1', 'stripe', 1250, 'usd', 'succeeded', $1, $1, 0)`,
      [at(-60)],
    );
    await db.pool.query(
      `insert into tallyd.charge_match (scope, charge_id, operation_id, intent_id, basis)
       values ('platform/test', 'ch_1', 'intent:order-1', 'order-1', 'charge_id')`,
    );
    const judged = { operations: new Set(["charge:platform/test:ch_1"]) };
    await run([], 10, judged);
    await run([], 20, judged);
    expect(await kinds()).toEqual(["opened", "corrected"]);
    expect((await outbox())[1]?.text).toContain("ch_1 turned out to be recorded as intent order-1");
  });
});

describe("storms (B41)", () => {
  const many = Array.from({ length: 200 }, (_, index) => makeNumbered(index));

  test("default: 200 new ones are one digest, found again they are none", async () => {
    await run(many, 0);
    const [digest, ...others] = await outbox();
    expect(others).toEqual([]);
    expect(digest?.kind).toBe("storm");
    expect(digest?.text).toContain("200 alerts in one message, 200 of them critical");
    expect(digest?.text).toContain("200 x double_charge");
    // 1000 + 1001 + … + 1199 cents.
    expect(digest?.text).toContain("2199.00 USD");
    expect(digest?.text).toContain("operation 199 was charged twice");
    await run(many, 5);
    expect(await kinds()).toEqual(["storm"]);
    await run([...many.slice(150), makeNumbered(999)], 10);
    expect(await kinds()).toEqual(["storm", "opened", "over"]);
    expect((await outbox())[2]?.text).toContain("150 incidents are over");
  });

  test("behavior: 10,000 in one pass are one message, and the list has them all", async () => {
    const storm = Array.from({ length: 10_000 }, (_, index) => makeNumbered(index));
    expect(await run(storm, 0)).toMatchObject({ opened: 10_000, told: 10_000 });
    expect(await kinds()).toEqual(["storm"]);
    const list = await listIncidents(db.pool, {}, at(1));
    expect(new Set(list.map((incident) => incident.id)).size).toBe(10_000);
    // Ten thousand rows take seconds when other test files keep the machine busy.
  }, 90_000);

  test("behavior: a storm over many runs is capped and names criticals", async () => {
    for (let batch = 0; batch < 12; batch += 1) {
      const findings = Array.from({ length: 8 }, (_, index) => makeNumbered(batch * 100 + index));
      await run(findings, batch);
      await deliver(batch);
    }
    const rows = await outbox();
    const singles = rows.filter((row) => row.kind === "opened");
    const digests = rows.filter((row) => row.kind === "storm");
    expect(singles.length).toBeLessThanOrEqual(30);
    // The first at once, the others gather in the one that waits for the end of the minute.
    expect(digests).toHaveLength(2);
    const text = rows.map((row) => row.text).join("\n");
    const named = new Set(text.match(/operation \d+ was charged twice/g));
    expect(named.size).toBe(96 - 19);
  });

  test("behavior: a burst that grows alerts three times at once, then once a minute", async () => {
    for (let size = 2; size < 20; size += 1) {
      const charges = Array.from({ length: size }, (_, index) => `ch_${String(index)}`);
      await run([makeFinding({ charges, amountAtRisk: BigInt(700 * (size - 1)) })], size);
      await deliver(size);
    }
    const rows = await outbox();
    expect(rows.map((row) => row.kind)).toEqual(["opened", "worsened", "worsened", "worsened"]);
    expect(rows[3]?.text).toContain("126.00 USD");
    expect(rows[3]?.due_at.getTime()).toBeGreaterThan(at(60).getTime());
  });
});

describe("people", () => {
  test("default: acknowledge, mute and close are kept with who and why", async () => {
    await run([makeFinding()], 0);
    expect(await countAlarming(db.pool, at(1))).toBe(1);
    await acknowledge(db.pool, person(1, "looking"));
    expect(await countAlarming(db.pool, at(1))).toBe(1);
    await mute(db.pool, { ...person(2), until: at(100) });
    expect(await countAlarming(db.pool, at(3))).toBe(0);
    // A mute that has run out counts as open.
    expect(await countAlarming(db.pool, at(100))).toBe(1);
    expect(await statusOf(ID, 100)).toBe("open");
    const open = await listIncidents(db.pool, { statuses: ["open"] }, at(100));
    expect(open).toHaveLength(1);
    await closeByPerson(db.pool, person(5, "not a duplicate"));
    expect(await countAlarming(db.pool, at(5))).toBe(0);
    const shown = await showIncident(db.pool, ID, at(6));
    expect(shown?.history.map(({ step, actor, note }) => [step, actor, note])).toEqual([
      ["opened", "tallyd", null],
      ["acknowledged", "sam", "looking"],
      ["muted", "sam", null],
      ["closed", "sam", "not a duplicate"],
    ]);
  });

  test("behavior: what was done elsewhere than in Slack is told there, of criticals", async () => {
    await run([makeFinding()], 0);
    await acknowledge(db.pool, { ...person(1, "looking <!channel>"), people: settings });
    await mute(db.pool, { ...person(2), until: at(3_600), people: settings });
    await closeByPerson(db.pool, { ...person(3, "two cards"), people: settings });
    await reopenByPerson(db.pool, { ...person(4), people: settings });
    const texts = (await outbox()).slice(1).map((row) => row.text.split("\n").slice(0, 2));
    expect(texts).toEqual([
      ["Acknowledged: double charge, 12.50 USD at risk", "By sam: looking <!channel>"],
      ["Muted until 2026-03-02 11:00 UTC: double charge, 12.50 USD at risk", "By sam."],
      ["Closed as not a duplicate: double charge, 12.50 USD at risk", "By sam: two cards"],
      ["Open again: double charge, 12.50 USD at risk", "By sam."],
    ]);
    const quiet = makeNumbered(1, { severity: "warning" });
    await run([makeFinding(), quiet], 5);
    const id = incidentId(quiet.code, quiet.subject);
    await closeByPerson(db.pool, { ...person(6), id, people: settings });
    expect(await kinds()).toEqual(["opened", ...Array<string>(4).fill("by_person"), "opened"]);
  });

  test("behavior: a script that closes hundreds is no storm", async () => {
    const many = Array.from({ length: 100 }, (_, index) => makeNumbered(index));
    await run(many, 0);
    await deliver(0);
    for (const { code, subject } of many) {
      const act = { ...person(1), id: incidentId(code, subject), people: settings };
      await closeByPerson(db.pool, act);
    }
    const rows = await outbox();
    expect(rows.filter((row) => row.kind === "by_person")).toHaveLength(30);
    expect(rows).toHaveLength(32);
    expect(rows.at(-1)?.text).toContain("70 incidents are over");
  });

  test("behavior: a person's close ends with a third charge", async () => {
    await run([makeFinding()], 0);
    await closeByPerson(db.pool, person(5));
    expect(await run([makeFinding()], 10)).toMatchObject({ reopened: 0, told: 0 });
    expect(await statusOf(ID, 10)).toBe("closed");
    expect(await run([THIRD], 20)).toMatchObject({ reopened: 1, told: 1 });
    expect((await outbox()).at(-1)?.text).toContain("one more: ch_3");
    expect(await statusOf(ID, 20)).toBe("open");
  });

  test("behavior: a person's word follows the charges to another operation id", async () => {
    await run([makeFinding()], 0);
    await closeByPerson(db.pool, person(5));
    const moved = { subject: "intent:order-1", operationId: "intent:order-1" };
    const judged = { operations: new Set(["intent:order-1"]) };
    expect(await run([makeFinding(moved)], 10, judged)).toMatchObject({ opened: 0, told: 0 });
    const list = await listIncidents(db.pool, {}, at(11));
    expect(list.map(({ status, closedBy }) => [status, closedBy])).toEqual([
      ["closed", "person"],
      ["closed", "person"],
    ]);
    expect(await kinds()).toEqual(["opened"]);
  });

  test("behavior: muted is quiet, worse is told, and its end by facts is quiet", async () => {
    await run([makeFinding()], 0);
    await mute(db.pool, { ...person(1), until: at(1_000) });
    await run([makeFinding()], 10);
    expect(await kinds()).toEqual(["opened"]);
    await run([THIRD], 20);
    expect(await kinds()).toEqual(["opened", "worsened"]);
    await mute(db.pool, { ...person(21), until: at(1_000) });
    await run([], 30);
    expect(await kinds()).toEqual(["opened", "worsened"]);
  });

  test("error: unknown id, closed incident, time that has passed", async () => {
    await expect(acknowledge(db.pool, person(0))).rejects.toThrow(/no incident "inc_/);
    await run([makeFinding()], 0);
    await expect(mute(db.pool, { ...person(5), until: at(4) })).rejects.toThrow(/has passed/);
    await closeByPerson(db.pool, person(5));
    await expect(acknowledge(db.pool, person(6))).rejects.toThrow(/is closed/);
  });
});

test("behavior: an incident without its alert is not kept either", async () => {
  await db.pool.query(
    "alter table tallyd.outbox add constraint refuse check (kind <> 'opened') not valid",
  );
  try {
    await expect(run([makeFinding()], 0)).rejects.toThrow(/refuse/);
  } finally {
    await db.pool.query("alter table tallyd.outbox drop constraint refuse");
  }
  expect(await listIncidents(db.pool, {}, at(1))).toEqual([]);
  expect(await kinds()).toEqual([]);
});
