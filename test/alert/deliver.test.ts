// Goal: every alert arrives, at most one message a second, and a repeat only where a loss is the
// other choice. Method: real PostgreSQL, the Slack stand-in, a clock that the test moves.
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { DeliverDeps, DeliverOptions } from "../../src/alert/deliver.ts";
import { UNCERTAIN_WAITS_MS, deliverDue } from "../../src/alert/deliver.ts";
import { hookFindings, hookHealth } from "../../src/alert/hook-health.ts";
import { createSlackSend } from "../../src/alert/slack.ts";
import type { Finding } from "../../src/core/finding.ts";
import type { Log } from "../../src/core/log.ts";
import { silentLog } from "../../src/core/log.ts";
import { recordFindings } from "../../src/incident/record.ts";
import type { SlackSandbox } from "../../src/sandbox/slack/server.ts";
import { startSlackSandbox } from "../../src/sandbox/slack/server.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import { ALL_JUDGED, at, makeFinding, makeNumbered } from "../incident/make.ts";

let db: TestDb;
let slack: SlackSandbox;
let now = 0;
beforeAll(async () => {
  db = await createTestDb();
  slack = await startSlackSandbox({ now: () => at(now).getTime() });
});
afterAll(async () => {
  await slack.close();
  await db.close();
});
beforeEach(async () => {
  now = 0;
  slack.control.clear();
  slack.control.mode = "ok";
  slack.control.modeCount = Infinity;
  slack.control.limited = false;
  await emptyTables(db.pool, [
    "tallyd.incident",
    "tallyd.incident_entry",
    "tallyd.outbox",
    "tallyd.hook",
  ]);
});

async function record(findings: readonly Finding[], hook: string | null = "set"): Promise<void> {
  const settings = { slackWebhookUrl: hook, slackCriticalWebhookUrl: null, publicUrl: null };
  const input = { findings, judged: ALL_JUDGED, now: at(now) };
  await recordFindings({ pool: db.pool, settings }, input);
}

function deps(change: Partial<DeliverDeps> = {}): DeliverDeps {
  return {
    pool: db.pool,
    now: () => Promise.resolve(at(now)),
    log: silentLog,
    hooks: { slack: createSlackSend(slack.webhookUrl), slackCritical: null },
    paceMs: 1,
    ...change,
  };
}

async function deliver(options: Partial<DeliverOptions> = {}, change: Partial<DeliverDeps> = {}) {
  return deliverDue(deps(change), { limit: 100, ...options });
}

async function statuses(): Promise<string[]> {
  const found = await db.pool.query<{ status: string }>(
    "select status from tallyd.outbox order by message_id",
  );
  return found.rows.map((row) => row.status);
}

/** Sets how the stand-in answers the next `count` requests. */
function answer(mode: typeof slack.control.mode, count = Infinity): void {
  slack.control.mode = mode;
  slack.control.modeCount = count;
}

function numbered(from: number, count: number): Finding[] {
  return Array.from({ length: count }, (_, index) => makeNumbered(from + index));
}

describe("delivery", () => {
  test("default: sent once, in order, as text and blocks", async () => {
    await record([makeNumbered(1), makeNumbered(2)]);
    expect(await deliver()).toEqual({ sent: 2, failed: 0 });
    expect(await deliver()).toEqual({ sent: 0, failed: 0 });
    const texts = slack.control.messages.map((message) => message.text?.split("\n")[1]);
    expect(texts).toEqual(["operation 1 was charged twice", "operation 2 was charged twice"]);
    expect(slack.control.messages[0]?.blocks.length).toBeGreaterThan(3);
    expect(await statuses()).toEqual(["sent", "sent"]);
  });

  test("behavior: hostile text arrives and mentions nobody", async () => {
    const hostile = "<!channel> & <https://evil.example|here>\n\0\u202E*b*";
    await record([makeFinding({ summary: hostile, charges: [hostile], evidence: { x: hostile } })]);
    await deliver();
    const [message] = slack.control.messages;
    expect(JSON.stringify(message?.payload)).not.toMatch(/<!channel|<https/);
    expect(message?.text).toContain("&lt;!channel&gt; &amp; ");
  });

  test("behavior: two senders at once send each message once", async () => {
    await record(numbered(1, 8));
    const all = await Promise.all([deliver(), deliver(), deliver()]);
    expect(all.reduce((sum, one) => sum + one.sent, 0)).toBe(8);
    expect(slack.control.messages).toHaveLength(8);
  });

  test("behavior: at most one message a second, over senders too", async () => {
    await record(numbered(1, 3));
    const times: number[] = [];
    const hooks = {
      slack: () => {
        times.push(performance.now());
        return Promise.resolve({ kind: "sent" as const });
      },
      slackCritical: null,
    };
    await deliver({ limit: 2 }, { hooks, paceMs: 80 });
    await deliver({}, { hooks, paceMs: 80 });
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(gaps).toHaveLength(2);
    // A timer may fire a millisecond early.
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(78);
  });

  test("behavior: without a hook the same text goes to the log", async () => {
    await record([makeFinding(), makeNumbered(1, { severity: "warning" })], null);
    const lines: string[] = [];
    const log: Log = {
      ...silentLog,
      error: (text) => lines.push(`error ${text}`),
      warn: (text) => lines.push(`warn ${text}`),
    };
    expect(await deliver({}, { log })).toEqual({ sent: 2, failed: 0 });
    expect(lines.map((line) => line.split("\n")[0])).toEqual([
      "warn Warning: double charge, 10.01 USD at risk",
      "error Critical: double charge, 12.50 USD at risk",
    ]);
    expect(slack.control.messages).toEqual([]);
  });

  test("behavior: a stop finishes the message at hand and leaves the rest", async () => {
    await record(numbered(1, 3));
    const stop = new AbortController();
    const send = createSlackSend(slack.webhookUrl);
    const hooks = {
      slack: async (message: Parameters<typeof send>[0]) => {
        stop.abort();
        return send(message);
      },
      slackCritical: null,
    };
    expect(await deliver({ signal: stop.signal }, { hooks, paceMs: 60_000 })).toEqual({
      sent: 1,
      failed: 0,
    });
    expect(await statuses()).toEqual(["sent", "pending", "pending"]);
  });

  test("behavior: a worsening that waits for company is sent early on request", async () => {
    for (let size = 2; size < 7; size += 1) {
      const charges = Array.from({ length: size }, (_, index) => `ch_${String(index)}`);
      await record([makeFinding({ charges })]);
      await deliver();
      now += 1;
    }
    expect(await deliver()).toEqual({ sent: 0, failed: 0 });
    expect(await deliver({ early: true })).toEqual({ sent: 1, failed: 0 });
    expect(slack.control.messages.at(-1)?.text).toContain("one more: ch_5");
  });
});

describe("the last word", () => {
  const kinds = () => slack.control.messages.map((message) => message.text?.split(":")[0] ?? "");
  const charges = (size: number) =>
    Array.from({ length: size }, (_, index) => `ch_${String(index)}`);

  test("behavior: a worsening that waits for company is not told after the end", async () => {
    for (let size = 2; size < 6; size += 1) {
      await record([makeFinding({ charges: charges(size) })]);
      await deliver();
      now += 1;
    }
    await record([]);
    for (let minute = 0; minute < 3; minute += 1) {
      await deliver();
      now += 60;
    }
    expect(kinds()).toEqual([
      "Critical",
      "Critical, worse than before",
      "Critical, worse than before",
      "Over",
    ]);
  });

  test("behavior: what may have arrived is not repeated after a newer word", async () => {
    await record([makeFinding()]);
    answer("stored_503", 1);
    await deliver();
    now += 10;
    await record([]);
    for (let minute = 0; minute < 3; minute += 1) {
      await deliver();
      now += 60;
    }
    expect(kinds()).toEqual(["Critical", "Over"]);
  });

  test("behavior: what waits a quarter of an hour by itself is no trouble of its way", async () => {
    await record([makeFinding()]);
    await db.pool.query("update tallyd.outbox set due_at = created_at + interval '15 minutes'");
    now = 905;
    expect(hookFindings(await hookHealth(db.pool, at(now)), at(now))).toEqual([]);
  });
});

describe("trouble with Slack (B41)", () => {
  test("behavior: 429 waits as long as Slack says, then sends once", async () => {
    await record([makeNumbered(1), makeNumbered(2)]);
    slack.control.limited = true;
    expect(await deliver()).toEqual({ sent: 1, failed: 1 });
    expect(await deliver({ early: true, afterStart: true })).toEqual({ sent: 0, failed: 0 });
    expect(slack.control.requests.map((request) => request.status)).toEqual([200, 429]);
    now += 2;
    expect(await deliver()).toEqual({ sent: 1, failed: 0 });
    expect(slack.control.messages).toHaveLength(2);
    expect(await statuses()).toEqual(["sent", "sent"]);
  });

  test("behavior: 503 after the message was kept is uncertain and repeated once", async () => {
    await record([makeFinding()]);
    answer("stored_503", 1);
    expect(await deliver()).toEqual({ sent: 0, failed: 1 });
    expect(await statuses()).toEqual(["uncertain"]);
    now += 10;
    expect(await deliver({ early: true, afterStart: true })).toEqual({ sent: 0, failed: 0 });
    now += 30;
    expect(await deliver()).toEqual({ sent: 1, failed: 0 });
    now += 100_000;
    await deliver();
    expect(slack.control.messages).toHaveLength(2);
  });

  test("behavior: a lost answer counts as uncertain", async () => {
    await record([makeFinding()]);
    answer("lost_response", 1);
    await deliver();
    expect(await statuses()).toEqual(["uncertain"]);
  });

  test("behavior: uncertain repeats are bounded, the rest is named later", async () => {
    await record([makeFinding()]);
    answer("stored_503");
    for (let step = 0; step < 60; step += 1) {
      await deliver();
      now += 3_600;
    }
    expect(slack.control.messages).toHaveLength(1 + UNCERTAIN_WAITS_MS.length);
    answer("ok");
    slack.control.clear();
    await record([makeFinding(), makeNumbered(7)]);
    await deliver();
    now += 60;
    await deliver();
    const texts = slack.control.messages.map((message) => message.text ?? "");
    expect(texts).toHaveLength(2);
    expect(texts[1]).toContain("1 alerts that waited for delivery");
    expect(texts[1]).toContain("order-1 was charged 2 times");
  });

  test("behavior: an outage of a day loses nothing and ends in a digest", async () => {
    answer("error_500");
    for (let hour = 0; hour < 24; hour += 1) {
      await record(numbered(1, hour + 1));
      await deliver();
      now += 3_600;
    }
    answer("ok");
    slack.control.clear();
    for (let minute = 0; minute < 10; minute += 1) {
      await deliver();
      now += 300;
    }
    const texts = slack.control.messages.map((message) => message.text ?? "").join("\n");
    const named = new Set(texts.match(/operation \d+ was charged twice/g));
    expect(named.size).toBe(24);
    expect(slack.control.messages.length).toBeLessThanOrEqual(11);
    expect((await statuses()).filter((status) => status !== "sent" && status !== "merged")).toEqual(
      [],
    );
  });

  test("behavior: the digest after an outage counts an incident once, as it is then", async () => {
    answer("error_500");
    for (let hour = 1; hour <= 8; hour += 1) {
      const worse = { amountAtRisk: BigInt(1_000 * hour) };
      await record([makeFinding(worse), ...(hour < 8 ? numbered(1, 5) : [])]);
      await deliver();
      now += 3_600;
    }
    answer("ok");
    slack.control.clear();
    await deliver();
    now += 300;
    await deliver();
    const texts = slack.control.messages.map((message) => message.text ?? "");
    const digest = texts.find((text) => text.includes("that waited for delivery"));
    expect(digest).toContain("6 alerts that waited for delivery, 1 of them critical");
    expect(digest).toContain("Money at risk:\n  80.00 USD");
    expect(digest).toContain("5 x double_charge, over");
  });

  test.each(["no_service_404", "no_service_410", "archived_403"] as const)(
    "behavior: a dead hook (%s) is noticed, nothing is lost, the next one gets it all",
    async (mode) => {
      await record([makeNumbered(1), makeNumbered(2)]);
      answer(mode);
      expect(await deliver()).toEqual({ sent: 0, failed: 1 });
      expect(await deliver()).toEqual({ sent: 0, failed: 0 });
      const [health] = await hookHealth(db.pool, at(now));
      expect(health).toMatchObject({ channel: "slack", state: "dead", waiting: 2, since: at(0) });
      const [finding] = hookFindings(await hookHealth(db.pool, at(now)), at(now));
      expect(finding).toMatchObject({ code: "config_error", subject: "hook:slack" });
      expect(JSON.stringify(finding)).not.toContain("sandboxsandbox");
      await record(finding === undefined ? [] : [finding, makeNumbered(1), makeNumbered(2)]);
      const told = await db.pool.query("select 1 from tallyd.outbox where channel = 'log'");
      expect(told.rows).toHaveLength(1);
      answer("ok");
      // A restart brings the new address and does not wait for the pause to end.
      expect(await deliver({ afterStart: true })).toEqual({ sent: 3, failed: 0 });
      expect(slack.control.messages).toHaveLength(2);
      const after = await hookHealth(db.pool, at(now));
      expect(after.find((hook) => hook.channel === "slack")?.state).toBe("ok");
    },
  );

  test("behavior: criticals whose hook is dead go by the other one", async () => {
    const gone = await startSlackSandbox();
    gone.control.mode = "no_service_404";
    const hooks = { ...deps().hooks, slackCritical: createSlackSend(gone.webhookUrl) };
    const settings = { slackWebhookUrl: "a", slackCriticalWebhookUrl: "b", publicUrl: null };
    const input = { findings: numbered(1, 2), judged: ALL_JUDGED, now: at(0) };
    await recordFindings({ pool: db.pool, settings }, input);
    await deliver({}, { hooks });
    await deliver({}, { hooks });
    expect(slack.control.messages).toHaveLength(2);
    const [health] = (await hookHealth(db.pool, at(0))).filter((one) => one.state === "dead");
    expect(health).toMatchObject({ channel: "slack_critical", waiting: 1 });
    // The one that stays asks the dead hook again when its pause is over.
    await recordFindings({ pool: db.pool, settings }, { ...input, findings: numbered(1, 3) });
    await deliver({}, { hooks });
    await deliver({}, { hooks });
    expect(slack.control.messages).toHaveLength(3);
    now = 660;
    await deliver({}, { hooks });
    await deliver({}, { hooks });
    expect(slack.control.messages).toHaveLength(3);
    gone.control.mode = "ok";
    await deliver({ afterStart: true }, { hooks });
    expect(gone.control.messages).toHaveLength(1);
    expect(slack.control.messages).toHaveLength(3);
    expect((await hookHealth(db.pool, at(now))).map((one) => one.state)).toEqual(["ok", "ok"]);
    await gone.close();
  });

  test("behavior: a hook out of reach keeps its messages and is a finding", async () => {
    await record([makeFinding()]);
    const closed = await startSlackSandbox();
    await closed.close();
    const nowhere = { slack: createSlackSend(closed.webhookUrl), slackCritical: null };
    for (let minute = 0; minute < 20; minute += 1) {
      await deliver({}, { hooks: nowhere });
      now += 60;
    }
    expect(await statuses()).toEqual(["pending"]);
    const health = await hookHealth(db.pool, at(now));
    expect(health[0]).toMatchObject({ state: "failing", error: "ECONNREFUSED", waiting: 1 });
    expect(hookFindings(health, at(now))[0]).toMatchObject({ code: "coverage_gap" });
    now += 300;
    expect(await deliver()).toEqual({ sent: 1, failed: 0 });
  });

  test("behavior: blocks that Slack refuses go as plain text", async () => {
    await record([makeFinding()]);
    await db.pool.query(
      `update tallyd.outbox set payload = jsonb_set(payload, '{blocks}', '[{"type": "nonsense"}]')`,
    );
    expect(await deliver()).toEqual({ sent: 1, failed: 0 });
    expect(slack.control.messages[0]?.blocks).toEqual([]);
    expect(slack.control.messages[0]?.text).toContain("double charge");
  });
});

describe("death of a sender", () => {
  test("behavior: between commit and sending nothing is lost", async () => {
    await record([makeFinding()]);
    // The process that recorded it is gone; another one finds it.
    expect(await deliver()).toEqual({ sent: 1, failed: 0 });
  });

  test("behavior: between sending and marking it is told once more, at once", async () => {
    await record([makeFinding()]);
    const send = createSlackSend(slack.webhookUrl);
    const dying = {
      slack: async (message: Parameters<typeof send>[0]) => {
        await send(message);
        throw new Error("killed");
      },
      slackCritical: null,
    };
    await expect(deliver({}, { hooks: dying })).rejects.toThrow("killed");
    expect(await deliver()).toEqual({ sent: 1, failed: 0 });
    expect(await deliver()).toEqual({ sent: 0, failed: 0 });
    expect(slack.control.messages).toHaveLength(2);
  });

  test("behavior: a sender that lost its connection leaves the channel free", async () => {
    await record([makeFinding(), makeNumbered(1)]);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const hanging = {
      slack: async () => {
        await held;
        return { kind: "unreachable" as const, reason: "killed" };
      },
      slackCritical: null,
    };
    const dead = deliver({ limit: 1 }, { hooks: hanging }).catch(() => undefined);
    await waitFor(async () => (await lockHolders()).length === 1);
    expect(await deliver()).toEqual({ sent: 0, failed: 0 });
    for (const pid of await lockHolders()) {
      await db.pool.query("select pg_terminate_backend($1)", [pid]);
    }
    await waitFor(async () => (await lockHolders()).length === 0);
    expect((await deliver()).sent).toBeGreaterThanOrEqual(1);
    release();
    await dead;
  });
});

async function lockHolders(): Promise<number[]> {
  const found = await db.pool.query<{ pid: number }>(
    `select l.pid
       from pg_locks l
      where l.locktype = 'advisory'
        and l.granted
        and l.database = (select oid from pg_database where datname = current_database())`,
  );
  return found.rows.map((row) => row.pid);
}

async function waitFor(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return;
    await sleep(10);
  }
  throw new Error("it did not come true within two seconds");
}
