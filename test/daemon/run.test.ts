/**
 * Goal: the daemon as a whole, in this process: webhook to Slack, two replicas on one database, a
 * database that goes away and comes back, and a stop that finishes what is under way.
 */
import { createHmac } from "node:crypto";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { Log } from "../../src/core/log.ts";
import { startDaemon } from "../../src/daemon/run.ts";
import type { Daemon } from "../../src/daemon/run.ts";
import { WEBHOOK_SECRET, openStage } from "./stage.ts";
import type { TestStage } from "./stage.ts";

let stage: TestStage;
const daemons: Daemon[] = [];

beforeEach(async () => {
  stage = await openStage({ LOCAL_BEAT: "1s", ORPHAN_GRACE: "2s", SAFETY_LAG: "1s" });
});
afterEach(async () => {
  await Promise.all(daemons.splice(0).map((daemon) => daemon.stop()));
  await stage.close();
});

async function start(): Promise<Daemon> {
  const tallyd = await stage.open();
  const daemon = await startDaemon(tallyd, { version: "0.0.0", routers: [], say: () => {} });
  daemons.push(daemon);
  return daemon;
}

function deliverTo(daemon: Daemon): void {
  stage.stripe.control.addEndpoint({
    url: `http://127.0.0.1:${String(daemon.port)}/webhooks/stripe`,
    secrets: [WEBHOOK_SECRET],
  });
}

function incidents(): Promise<{ code: string; count: number }[]> {
  return stage.pool
    .query<{ code: string; count: number }>("select code, count from tallyd.incident order by code")
    .then((found) => found.rows);
}

const codes = async (): Promise<string[]> => (await incidents()).map(({ code }) => code);

async function post(daemon: Daemon, event: object): Promise<number> {
  const body = JSON.stringify(event);
  const t = String(Math.floor(Date.now() / 1_000));
  const v1 = createHmac("sha256", WEBHOOK_SECRET).update(`${t}.${body}`).digest("hex");
  const answer = await fetch(`http://127.0.0.1:${String(daemon.port)}/webhooks/stripe`, {
    method: "POST",
    headers: { "content-type": "application/json", "stripe-signature": `t=${t},v1=${v1}` },
    body,
  });
  await answer.text();
  return answer.status;
}

const EVENT = {
  id: "evt_1",
  object: "event",
  api_version: "2024-06-20",
  created: Math.floor(Date.now() / 1_000),
  type: "charge.succeeded",
  livemode: false,
  data: { object: { id: "ch_1", object: "charge" } },
};

describe("startDaemon", () => {
  it("behavior: what the table could tell more is one line, nothing of chains in it", async () => {
    await stage.pool.query("alter table payment_intents drop column nonce, drop column reference");
    const lines: { level: string; message: string; fields: unknown }[] = [];
    const into =
      (level: string): Log["info"] =>
      (message, fields) => {
        if (message.startsWith("the team's table")) lines.push({ level, message, fields });
      };
    const log = {
      debug: into("debug"),
      info: into("info"),
      warn: into("warn"),
      error: into("error"),
    };
    const tallyd = await stage.open(log);
    const options = { version: "0.0.0", routers: [], say: () => {} };
    daemons.push(await startDaemon(tallyd, options));
    expect(lines).toEqual([
      {
        level: "info",
        message: "the team's table works, and could tell more: see tallyd doctor",
        fields: { about: ["field reference", "field repeatConfirmed"] },
      },
    ]);
  });

  it("default: webhooks of a double charge end as one message in Slack", async () => {
    const daemon = await start();
    deliverTo(daemon);
    await stage.row({ id: "twice", state: "recorded", charge: "pi_one", amount: 2_000 });
    stage.pay("twice", { id: "pi_one" });
    stage.pay("twice", { id: "pi_two" });
    await expect.poll(codes, { timeout: 15_000 }).toEqual(["double_charge"]);
    await expect.poll(() => stage.slack.control.messages.length, { timeout: 5_000 }).toBe(1);
    expect((await daemon.readiness()).checks.filter(({ ok }) => !ok)).toEqual([]);
  });

  it("behavior: two replicas find and tell it once", async () => {
    const [a, b] = [await start(), await start()];
    deliverTo(a);
    deliverTo(b);
    await stage.row({ id: "twice", state: "recorded", charge: "pi_one", amount: 2_000 });
    stage.pay("twice", { id: "pi_one" });
    stage.pay("twice", { id: "pi_two" });
    await expect.poll(codes, { timeout: 15_000 }).toEqual(["double_charge"]);
    await expect.poll(() => stage.slack.control.messages.length, { timeout: 5_000 }).toBe(1);
    await a.stop();
    // The one that is left goes on alone.
    stage.pay("nobody", { amount: 777 });
    await expect.poll(codes, { timeout: 15_000 }).toContain("orphan_charge");
    expect(stage.slack.control.messages.length).toBeLessThanOrEqual(2);
  });

  it("behavior: after every connection was lost it recovers by itself", async () => {
    const daemon = await start();
    expect(await post(daemon, EVENT)).toBe(200);
    await stage.pool.query(
      `select pg_terminate_backend(pid)
         from pg_stat_activity
        where datname = current_database()
          and application_name in ('tallyd', 'tallyd-intents')`,
    );
    await expect.poll(() => post(daemon, { ...EVENT, id: "evt_2" }), { timeout: 15_000 }).toBe(200);
    await expect.poll(async () => (await daemon.readiness()).ready, { timeout: 15_000 }).toBe(true);
    // The listener and the locks are back too: a payment is judged at once.
    deliverTo(daemon);
    stage.pay("nobody");
    await expect.poll(codes, { timeout: 20_000 }).toContain("orphan_charge");
  });

  it("behavior: stop ends well within ten seconds and leaves no job unfinished", async () => {
    const daemon = await start();
    const began = performance.now();
    await daemon.stop();
    expect(performance.now() - began).toBeLessThan(10_000);
    const left = await stage.pool.query("select from tallyd.job_run where finished_at is null");
    expect(left.rowCount).toBe(0);
    await expect(fetch(`http://127.0.0.1:${String(daemon.port)}/`)).rejects.toThrow();
  });

  it("error: a port in use is a fault of the settings", async () => {
    const daemon = await start();
    const taken = await openStage({ PORT: String(daemon.port) });
    const tallyd = await taken.open();
    const options = { version: "0.0.0", routers: [], say: () => {} };
    await expect(startDaemon(tallyd, options)).rejects.toThrow(/PORT: saw \d+, which another/);
    await tallyd.close();
    await taken.close();
  });
});
