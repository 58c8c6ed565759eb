// Goal: programs get each word about an incident in its order, signed, again and again until they
// have it, and a way out that is gone is seen. Method: real PostgreSQL, real HTTP to stand-ins that
// check signatures and events by the published rules, a clock that the test moves.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { DeliverDeps, DeliverOptions } from "../../src/alert/deliver.ts";
import { PROGRAM_GIVES_UP_MS, deliverDue } from "../../src/alert/deliver.ts";
import { hookFindings, hookHealth } from "../../src/alert/hook-health.ts";
import { createPagerDutySend } from "../../src/alert/pagerduty.ts";
import type { Senders } from "../../src/alert/ways.ts";
import { createWebhookSend } from "../../src/alert/webhook.ts";
import type { Finding } from "../../src/core/finding.ts";
import { silentLog } from "../../src/core/log.ts";
import type { Log } from "../../src/core/log.ts";
import type { Act } from "../../src/incident/act.ts";
import { acknowledge, closeByPerson, mute } from "../../src/incident/act.ts";
import { listIncidents } from "../../src/incident/present.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { remindDue } from "../../src/incident/remind.ts";
import type { PagerDutySandbox } from "../../src/sandbox/pagerduty/server.ts";
import { startPagerDutySandbox } from "../../src/sandbox/pagerduty/server.ts";
import type { WebhookSandbox } from "../../src/sandbox/webhook/server.ts";
import { startWebhookSandbox } from "../../src/sandbox/webhook/server.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import { ALL_JUDGED, at, makeFinding, makeNumbered } from "../incident/make.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const KEY = "0123456789abcdef0123456789abcdef";

let db: TestDb;
let hook: WebhookSandbox;
let pager: PagerDutySandbox;
let now = 0;
beforeAll(async () => {
  db = await createTestDb();
  hook = await startWebhookSandbox({ secret: SECRET, now: () => at(now).getTime() });
  pager = await startPagerDutySandbox(KEY);
});
afterAll(async () => {
  await hook.close();
  await pager.close();
  await db.close();
});
beforeEach(async () => {
  now = 0;
  for (const stand of [hook, pager]) {
    stand.clear();
    stand.control.mode = "ok";
    stand.control.modeCount = Infinity;
  }
  await emptyTables(db.pool, [
    ...["tallyd.incident", "tallyd.incident_entry", "tallyd.outbox", "tallyd.hook"],
    "tallyd.reminder",
  ]);
});

function settings() {
  return {
    ...{ slackWebhookUrl: null, slackCriticalWebhookUrl: null },
    publicUrl: "https://tallyd.example",
    webhook: { url: hook.webhookUrl, secrets: [SECRET] },
    pagerDuty: { routingKey: KEY, apiBase: pager.url },
  };
}

async function record(findings: readonly Finding[]): Promise<void> {
  const input = { findings, judged: ALL_JUDGED, now: at(now) };
  await recordFindings({ pool: db.pool, settings: settings() }, input);
}

function senders(change: Partial<Senders> = {}): Senders {
  const { webhook, pagerDuty } = settings();
  return {
    ...{ slack: null, slackCritical: null },
    webhook: createWebhookSend(webhook, { now: () => at(now) }),
    pagerDuty: createPagerDutySend(pagerDuty),
    ...change,
  };
}

async function deliver(change: Partial<Senders> = {}, options: Partial<DeliverOptions> = {}) {
  const deps: DeliverDeps = {
    ...{ pool: db.pool, now: () => Promise.resolve(at(now)), log: silentLog },
    ...{ hooks: senders(change), paceMs: 1 },
  };
  return deliverDue(deps, { limit: 100, ...options });
}

function act(id: string): Act {
  return { id, actor: "ana", note: "on it", now: at(now), programs: settings() };
}

async function firstId(): Promise<string> {
  const [incident] = await listIncidents(db.pool, {}, at(now));
  return incident?.id ?? "";
}

function types(): string[] {
  return hook.deliveries.map(({ body }) => (body as { readonly type: string }).type);
}

async function waiting(channel: string): Promise<string[]> {
  const found = await db.pool.query<{ status: string }>(
    "select status from tallyd.outbox where channel = $1 order by message_id",
    [channel],
  );
  return found.rows.map((row) => row.status);
}

const THIRD = makeFinding({ charges: ["ch_1", "ch_2", "ch_3"], amountAtRisk: 2500n });

describe("the signed webhook", () => {
  test("default: signed, with the incident as the list prints it", async () => {
    await record([makeFinding()]);
    await deliver();
    const [listed] = await listIncidents(db.pool, {}, at(now));
    expect(hook.deliveries).toHaveLength(1);
    expect(hook.deliveries[0]?.body).toEqual({
      type: "incident.opened",
      timestamp: at(0).toISOString(),
      data: {
        incident: JSON.parse(JSON.stringify(listed)) as unknown,
        ...{ changes: [], note: null, actor: "tallyd" },
        url: `https://tallyd.example/incidents/${listed?.id ?? ""}`,
      },
    });
    expect(hook.control.requests.at(-1)?.path).toBe("/alerts?team=payments");
  });

  test("behavior: the specification's own example has its signature", async () => {
    const example = {
      ...{ id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330" },
      ...{
        body: '{"test": 2432232314}',
        signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
      },
    };
    const stand = await startWebhookSandbox({ secret: SECRET, now: () => 1_614_265_330_000 });
    const { status } = await fetch(stand.webhookUrl, {
      method: "POST",
      headers: {
        "webhook-id": example.id,
        "webhook-timestamp": example.timestamp,
        "webhook-signature": example.signature,
      },
      body: example.body,
    });
    await stand.close();
    expect(status).toBe(204);
  });

  test("behavior: while its key changes, a reader with either key takes a message", async () => {
    const newKey = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const reader = await startWebhookSandbox({ secret: newKey, now: () => at(now).getTime() });
    await record([makeFinding(), makeNumbered(1)]);
    const clock = { now: () => at(now) };
    const secrets = [SECRET, newKey];
    const toOld = createWebhookSend({ url: hook.webhookUrl, secrets }, clock);
    const toNew = createWebhookSend({ url: reader.webhookUrl, secrets }, clock);
    await deliver({ webhook: toOld }, { limit: 1 });
    await deliver({ webhook: toNew });
    expect([hook.deliveries.length, reader.deliveries.length]).toEqual([1, 1]);
    await reader.close();
  });

  test("behavior: every word of a life comes, a person's too", async () => {
    await record([makeFinding()]);
    const id = await firstId();
    await record([THIRD]);
    await acknowledge(db.pool, act(id));
    await mute(db.pool, { ...act(id), until: at(3_600) });
    await closeByPerson(db.pool, act(id));
    await record([makeFinding({ charges: ["ch_1", "ch_2", "ch_3", "ch_4"] })]);
    await record([]);
    await deliver();
    const names = ["opened", "worsened", "acknowledged", "muted", "closed", "reopened", "closed"];
    expect(types()).toEqual(names.map((name) => `incident.${name}`));
    expect(hook.deliveries[1]?.body).toMatchObject({
      data: { changes: ["one more: ch_3", expect.stringContaining("rose from")] },
    });
    expect(hook.deliveries[4]?.body).toMatchObject({
      data: { actor: "ana", note: "on it", incident: { id, status: "closed", closedBy: "person" } },
    });
  });

  test("behavior: a storm is one message with counts, sums and the worst", async () => {
    await record(Array.from({ length: 400 }, (_, index) => makeNumbered(index)));
    await deliver();
    expect(types()).toEqual(["incidents.digest"]);
    expect(hook.deliveries[0]?.body).toMatchObject({
      data: { kind: "storm", total: 400, criticals: 400, counts: { double_charge: 400 } },
    });
  });

  test("behavior: reminders come too, many as one; PagerDuty has its own", async () => {
    const remind = (seconds: number) => {
      const remindersMs = [1_800_000];
      return remindDue({ pool: db.pool, settings: { ...settings(), remindersMs } }, at(seconds));
    };
    const reminded = { ...settings(), remindersMs: [1_800_000] };
    const input = { findings: [makeFinding()], judged: ALL_JUDGED, now: at(0) };
    await recordFindings({ pool: db.pool, settings: reminded }, input);
    await remind(1_800);
    now = 1_800;
    await deliver();
    expect(types()).toEqual(["incident.opened", "incident.reminded"]);
    expect(hook.deliveries[1]?.body).toMatchObject({
      data: { actor: "tallyd", changes: [], incident: { id: await firstId() } },
    });
    const findings = [makeFinding(), ...Array.from({ length: 12 }, (_, n) => makeNumbered(n))];
    await recordFindings({ pool: db.pool, settings: reminded }, { ...input, findings });
    hook.clear();
    await remind(9_000);
    now = 9_000;
    await deliver();
    expect(types()).toEqual(["incidents.digest", "incidents.digest"]);
    expect(hook.deliveries[1]?.body).toMatchObject({ data: { kind: "reminders", total: 13 } });
    expect(await waiting("pagerduty")).toHaveLength(2);
  });

  test("behavior: killed between sending and marking, it comes again with the same id", async () => {
    await record([makeFinding()]);
    const dying: Senders["webhook"] = async (message) => {
      await senders().webhook?.(message);
      throw new Error("killed");
    };
    await expect(deliver({ webhook: dying })).rejects.toThrow("killed");
    now += 400;
    await deliver();
    expect(hook.deliveries).toHaveLength(2);
    const [first, second] = hook.deliveries;
    expect(second?.id).toBe(first?.id);
    expect(second?.body).toEqual(first?.body);
    // Signed anew: an old time would be refused as a replay.
    expect(second?.timestamp).toBe((first?.timestamp ?? 0) + 400);
  });

  test.each([503, 500, 422] as const)(
    "behavior: HTTP %s holds up the incident's later words, and no other incident",
    async (status) => {
      await record([makeFinding()]);
      hook.control.mode = status;
      hook.control.modeCount = 1;
      await deliver();
      await record([THIRD, makeNumbered(1)]);
      now += 10;
      await deliver();
      expect(types()).toEqual(["incident.opened"]);
      now += 30;
      await deliver();
      expect(types()).toEqual(["incident.opened", "incident.opened", "incident.worsened"]);
    },
  );

  test("behavior: an outage of a day loses nothing and keeps the order", async () => {
    hook.control.mode = 503;
    for (let hour = 0; hour < 24; hour += 1) {
      await record(Array.from({ length: hour + 1 }, (_, index) => makeNumbered(index)));
      await deliver();
      now += 3_600;
    }
    hook.control.mode = "ok";
    for (let hour = 0; hour < 8; hour += 1) {
      await deliver();
      now += 3_600;
    }
    expect(types()).toEqual(Array.from({ length: 24 }, () => "incident.opened"));
    expect(new Set(hook.deliveries.map(({ id }) => id)).size).toBe(24);
  });

  test("behavior: a message that is never taken is told in the log in the end", async () => {
    await record([makeFinding()]);
    hook.control.mode = 500;
    const lines: string[] = [];
    const log: Log = { ...silentLog, error: (text) => lines.push(text) };
    const deps = { pool: db.pool, now: () => Promise.resolve(at(now)), log, paceMs: 1 };
    const hooks = senders({ pagerDuty: async () => Promise.resolve({ kind: "sent" }) });
    const tries = Math.ceil(PROGRAM_GIVES_UP_MS / 7_200_000) + 4;
    for (let index = 0; index < tries; index += 1) {
      await deliverDue({ ...deps, hooks }, { limit: 10 });
      now += 7_200;
    }
    expect(await waiting("webhook")).toEqual(["dead"]);
    expect(lines.some((line) => line.startsWith("incident.opened: double charge"))).toBe(true);
  });

  test.each([
    [410, "dead"],
    ["redirect", "dead"],
    [401, "failing"],
    [404, "failing"],
  ] as const)("behavior: %s makes it %s, and nothing is lost", async (mode, state) => {
    const elsewhere = await startWebhookSandbox({ secret: SECRET, now: () => at(now).getTime() });
    hook.control.redirectTo = elsewhere.webhookUrl;
    hook.control.mode = mode;
    await record([makeFinding(), makeNumbered(1)]);
    await deliver();
    const health = await hookHealth(db.pool, at(now));
    expect(health.find(({ channel }) => channel === "webhook")).toMatchObject({
      state,
      waiting: 2,
    });
    const [finding] = hookFindings(health, at(1_000));
    expect(finding).toMatchObject({
      ...{ code: state === "dead" ? "config_error" : "coverage_gap", subject: "hook:webhook" },
      evidence: { channel: "webhook" },
    });
    expect(JSON.stringify(finding)).not.toMatch(/whsec|alerts\?team/);
    // What is wrong with it is told on the other ways alone.
    await record(finding === undefined ? [] : [makeFinding(), makeNumbered(1), finding]);
    expect(await waiting("webhook")).toHaveLength(2);
    expect(await waiting("pagerduty")).toHaveLength(3);
    hook.control.mode = "ok";
    await deliver({}, { afterStart: true });
    expect(hook.deliveries).toHaveLength(2);
    expect(elsewhere.control.requests).toEqual([]);
    await elsewhere.close();
  });

  test("behavior: 429 waits as long as it says, also over a restart", async () => {
    hook.control.mode = 429;
    hook.control.modeCount = 1;
    hook.control.retryAfter = 60;
    await record([makeFinding()]);
    await deliver();
    now += 30;
    await deliver({}, { afterStart: true });
    expect(hook.deliveries).toEqual([]);
    now += 31;
    await deliver();
    expect(hook.deliveries).toHaveLength(1);
  });

  test("behavior: what does not go out for a quarter of an hour is a finding", async () => {
    await record([makeFinding()]);
    const findingsAt = async (seconds: number) =>
      hookFindings(await hookHealth(db.pool, at(seconds)), at(seconds)).map((one) => one.subject);
    expect(await findingsAt(899)).toEqual([]);
    expect(await findingsAt(901)).toContain("hook:webhook");
    await deliver();
    expect(await findingsAt(901)).toEqual([]);
  });

  test("behavior: one that is configured no more has no trouble", async () => {
    hook.control.mode = 410;
    await record([makeFinding()]);
    await deliver();
    await deliver({ webhook: null });
    expect(hookFindings(await hookHealth(db.pool, at(now)), at(now))).toEqual([]);
    expect(await waiting("webhook")).toEqual(["sent"]);
  });
});

describe("PagerDuty", () => {
  function alert(id: string) {
    return pager.alerts.get(id);
  }

  test("default: criticals alone are triggered, under the incident's id", async () => {
    await record([makeFinding(), makeNumbered(1, { severity: "warning" })]);
    await deliver();
    expect([...pager.alerts.values()]).toMatchObject([
      { status: "triggered", summary: "double charge: order-1 was charged 2 times within 35 s" },
    ]);
    const [sent] = pager.control.requests.slice(-1);
    expect(JSON.parse(sent?.body ?? "")).toMatchObject({
      ...{ routing_key: KEY, event_action: "trigger", client: "tallyd" },
      payload: { severity: "critical", source: "platform/test", class: "double_charge" },
    });
  });

  test("behavior: acknowledged and resolved with the incident, once each", async () => {
    await record([makeFinding()]);
    const id = await firstId();
    await deliver();
    await acknowledge(db.pool, act(id));
    await mute(db.pool, { ...act(id), until: null });
    await deliver();
    expect(alert(id)).toMatchObject({ status: "acknowledged", events: 2 });
    await record([THIRD]);
    await deliver();
    expect(alert(id)).toMatchObject({ status: "acknowledged", events: 3 });
    await record([]);
    await record([]);
    await deliver();
    expect(alert(id)).toMatchObject({ status: "resolved", events: 4 });
  });

  test("behavior: closed by a person is resolved; worse again is a new alert", async () => {
    await record([makeFinding()]);
    const id = await firstId();
    await closeByPerson(db.pool, act(id));
    await deliver();
    expect(alert(id)?.status).toBe("resolved");
    await record([THIRD]);
    await deliver();
    expect(alert(id)).toMatchObject({ status: "triggered", events: 1 });
  });

  test("behavior: the end of what never paged is not told", async () => {
    const { length: before } = pager.control.requests;
    await record([makeNumbered(1, { severity: "warning" })]);
    await acknowledge(db.pool, act(await firstId()));
    await record([]);
    await deliver();
    expect(pager.control.requests).toHaveLength(before);
  });

  test("behavior: a storm pages once, whatever is repeated", async () => {
    await record(Array.from({ length: 50 }, (_, index) => makeNumbered(index)));
    pager.control.mode = "stored_503";
    pager.control.modeCount = 1;
    await deliver();
    now += 40;
    await deliver();
    expect([...pager.alerts.values()]).toMatchObject([
      { status: "triggered", events: 2, summary: "50 alerts in one message, 50 of them critical" },
    ]);
  });

  test("behavior: killed between sending and marking, there is still one alert", async () => {
    await record([makeFinding()]);
    const dying: Senders["pagerDuty"] = async (message) => {
      await senders().pagerDuty?.(message);
      throw new Error("killed");
    };
    await expect(deliver({ pagerDuty: dying })).rejects.toThrow("killed");
    await deliver();
    expect([...pager.alerts.values()]).toMatchObject([{ status: "triggered", events: 2 }]);
  });

  test("behavior: an end never overtakes its beginning", async () => {
    await record([makeFinding()]);
    pager.control.mode = 500;
    pager.control.modeCount = 1;
    await deliver();
    await record([]);
    now += 10;
    await deliver();
    expect(pager.alerts.size).toBe(0);
    now += 30;
    await deliver();
    expect(alert(await firstId())).toMatchObject({ status: "resolved", events: 2 });
  });

  test("behavior: 429 is repeated", async () => {
    pager.control.mode = 429;
    pager.control.modeCount = 1;
    await record([makeFinding()]);
    await deliver();
    now += 2;
    await deliver();
    expect(pager.alerts.size).toBe(1);
  });

  test("error: a key that PagerDuty refuses is a dead way out", async () => {
    pager.routingKeys.clear();
    await record([makeFinding()]);
    await deliver();
    pager.routingKeys.add(KEY);
    const health = await hookHealth(db.pool, at(now));
    const [finding] = hookFindings(health, at(now));
    expect(finding).toMatchObject({ code: "config_error", subject: "hook:pagerduty" });
    expect(finding?.advice).toContain("PAGERDUTY_ROUTING_KEY");
    expect(JSON.stringify(health)).not.toContain(KEY);
    await deliver({}, { afterStart: true });
    expect(pager.alerts.size).toBe(1);
  });

  test("error: an event that PagerDuty refuses is told in the log, and the next one goes", async () => {
    await record([makeNumbered(1), makeNumbered(2)]);
    await db.pool.query(
      `update tallyd.outbox
          set payload = jsonb_set(payload, '{event,payload,summary}', '""')
        where message_id = (select min(message_id) from tallyd.outbox where channel = 'pagerduty')`,
    );
    await deliver();
    expect(await waiting("pagerduty")).toEqual(["dead", "sent"]);
    expect(pager.alerts.size).toBe(1);
  });
});
