/**
 * Goal: doctor names what is missing or weak, with advice, and never throws, prints a secret or
 * changes anything.
 * Method: real databases, the Stripe stand-in, and settings as a user would give them.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { systemClock } from "../../src/core/clock.ts";
import { sharesSessions } from "../../src/daemon/pooler.ts";
import { budgetLines } from "../../src/doctor/check-budget.ts";
import type { Check } from "../../src/doctor/check.ts";
import { doctorExitCode, fine, told, unreadable } from "../../src/doctor/check.ts";
import { formatDoctor } from "../../src/doctor/format-doctor.ts";
import { runDoctor } from "../../src/doctor/run-doctor.ts";
import type { DoctorDeps } from "../../src/doctor/run-doctor.ts";
import { startStripeSandbox } from "../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../src/sandbox/stripe/server.ts";
import { openStripe } from "../../src/sources/stripe/client.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { SEED_DDL, SHOP_DDL, SHOP_FILE, settingsOf } from "../sources/local/bench-table.ts";

let own: TestDb;
let team: TestDb;
let sandbox: StripeSandbox;

beforeAll(async () => {
  own = await createTestDb();
  team = await createTestDb({ template: "empty" });
  sandbox = await startStripeSandbox({});
});

afterAll(async () => {
  await sandbox.close();
  await team.close();
  await own.close();
});

beforeEach(async () => {
  await team.pool.query("drop schema if exists shop cascade");
  await team.pool.query("drop table if exists public.payment_intents");
});

interface Case {
  readonly env?: Record<string, string>;
  readonly file?: unknown;
  readonly deps?: Partial<DoctorDeps>;
}

async function doctor({ env = {}, file, deps = {} }: Case): Promise<Check[]> {
  const settings = settingsOf({ env: { DATABASE_URL: own.url, ...env }, file });
  const { apiKey } = settings.stripe;
  const stripe =
    apiKey === null ? null : openStripe({ ...settings.stripe, apiKey }, { clock: systemClock });
  return runDoctor({
    settings,
    clock: systemClock,
    own: own.pool,
    team: team.pool,
    sharesSessions,
    stripe,
    sendTest: null,
    ...deps,
  });
}

function find(checks: readonly Check[], name: string): Check | undefined {
  return checks.find((check) => check.name === name);
}

describe("runDoctor", () => {
  test("default: a whole set-up has nothing to fault", async () => {
    await team.pool.query(SEED_DDL);
    const checks = await doctor({
      env: {
        INTENTS_DATABASE_URL: team.url,
        STRIPE_API_KEY: "rk_test_sandbox0123456789",
        STRIPE_API_BASE: sandbox.url,
        STRIPE_WEBHOOK_SECRET: "whsec_0123456789abcdef",
        SLACK_WEBHOOK_URL: "https://hooks.slack.com/services/T0/B0/secretpart",
      },
    });
    expect(checks.filter((check) => ["warning", "fault"].includes(check.status))).toEqual([]);
    expect(doctorExitCode(checks)).toBe(0);
    expect(find(checks, "intents table")?.seen).toContain('table "public"."payment_intents"');
    expect(find(checks, "intents table: amount column")).toMatchObject({ status: "remark" });
    expect(find(checks, "intents table: field reference")?.meaning).toContain("double_charge");
    // No chain is watched here.
    expect(find(checks, "intents table: field nonce")).toBeUndefined();
    expect(find(checks, "clocks")?.seen).toContain("in step with Stripe");
    expect(find(checks, "session locks")?.status).toBe("ok");
    expect(JSON.stringify(checks)).not.toMatch(/secretpart|6789abcdef|sandbox0123/);
  });

  test("behavior: nothing set up says what is not seen, and creates nothing", async () => {
    const checks = await doctor({});
    const weak = checks.filter((check) => check.status === "warning").map((check) => check.name);
    expect(weak).toEqual(["Stripe key", "webhook secret", "Slack"]);
    expect(find(checks, "intents table")).toMatchObject({
      status: "remark",
      seen: "public.payment_intents is not there yet",
    });
    const there = await team.pool.query("select to_regclass('payment_intents') as name");
    expect(there.rows).toEqual([{ name: null }]);
  });

  test("behavior: a key that can write is reported", async () => {
    const checks = await doctor({
      env: { STRIPE_API_KEY: "sk_test_sandbox0123456789", STRIPE_API_BASE: sandbox.url },
    });
    expect(find(checks, "Stripe key")).toMatchObject({ status: "warning" });
    expect(find(checks, "Stripe key")?.seen).toContain("can create charges");
    expect(find(checks, "Stripe lists of platform/test")?.status).toBe("ok");
  });

  test("behavior: a restricted key: what it read, and that writing cannot be seen", async () => {
    const env = { STRIPE_API_KEY: "rk_test_sandbox0123456789", STRIPE_API_BASE: sandbox.url };
    const whole = await doctor({ env });
    expect(find(whole, "Stripe key")).toMatchObject({ status: "remark" });
    expect(find(whole, "Stripe key")?.seen).toContain("whether it may write cannot be seen");
    expect(find(whole, "Stripe key")?.advice).toContain(
      "https://dashboard.stripe.com/test/apikeys",
    );
    expect(find(whole, "Stripe lists of platform/test")).toMatchObject({
      status: "ok",
      seen: "payment_intents, charges, refunds, disputes, events can be read",
    });
    // Nothing but reads was sent to find that out.
    expect(sandbox.control.requests.filter((request) => request.method !== "GET")).toEqual([]);
  });

  test("error: a right to read that a restricted key lacks is named", async () => {
    const message =
      "The provided key 'rk_test_sand' does not have the required permissions for this endpoint " +
      "on account 'acct_1SandboxPlatform'. Having the 'rak_dispute_read' permission would allow " +
      "this request to continue.";
    const body = { error: { type: "invalid_request_error", message } };
    const end = sandbox.control.fault({ kind: "respond", path: "/v1/disputes", status: 403, body });
    const env = { STRIPE_API_KEY: "rk_test_sandbox0123456789", STRIPE_API_BASE: sandbox.url };
    const checks = await doctor({ env });
    end();
    expect(find(checks, "Stripe lists of platform/test")).toMatchObject({
      status: "fault",
      seen:
        "disputes: the key lacks the permission rak_dispute_read (HTTP 403); " +
        "can be read: payment_intents, charges, refunds, events",
    });
    expect(doctorExitCode(checks)).toBe(4);
  });

  test("error: what cannot be reached is unknown, and said once", async () => {
    const checks = await doctor({
      deps: {
        team: new Error("connect ECONNREFUSED 127.0.0.1:1"),
        stripe: {
          account: () => Promise.reject(new Error("refused")),
          list: () => Promise.reject(new Error("refused")),
          clockAheadMs: () => null,
        },
      },
      env: { STRIPE_API_KEY: "rk_test_0123456789" },
    });
    const unknown = checks.filter((check) => check.unreadable).map((check) => check.name);
    expect(unknown).toEqual(["team's database", "Stripe lists of platform/test"]);
    expect(doctorExitCode(checks)).toBe(4);
  });

  test("error: a table that does not fit is a fault per field", async () => {
    await team.pool.query(SHOP_DDL);
    const { timeZone, ...intents } = SHOP_FILE.intents;
    expect(timeZone).not.toBe("");
    const checks = await doctor({ file: { intents } });
    const faults = checks.filter((check) => check.status === "fault");
    expect(faults.map((check) => check.seen.split(":")[0])).toEqual([
      "intents.columns.createdAt",
      "intents.columns.updatedAt",
    ]);
    expect(doctorExitCode(checks)).toBe(2);
  });

  test("behavior: a zone for times without one, and a table that takes no writes", async () => {
    await team.pool.query(SHOP_DDL);
    const { write, ...intents } = SHOP_FILE.intents;
    expect(write.state).toBe("status");
    const checks = await doctor({ file: { intents } });
    expect(find(checks, "time zone")).toMatchObject({ status: "remark" });
    expect(find(checks, "time zone")?.seen).toContain("Europe/Berlin");
    expect(find(checks, "resolver")).toMatchObject({ status: "warning" });
  });

  test("behavior: faulty rows, chains and clocks apart", async () => {
    await own.pool.query(
      `insert into tallyd.intent_fault
       values ('i1', false, '[{"field":"state","seen":"PAID!","allowed":"recorded"}]', now(), now())`,
    );
    const chain = {
      ...{ chainId: "eip155:1", rpcUrls: ["http://127.0.0.1:9/secret"], tokens: ["USDC"] },
      payees: [`0x${"ab".repeat(20)}`],
    };
    const late = { now: () => new Date(Date.now() - 90_000) };
    const checks = await doctor({ file: { chains: [chain] }, deps: { clock: late } });
    await own.pool.query("delete from tallyd.intent_fault");
    expect(find(checks, "rows")?.seen).toBe("i1: state is PAID!");
    const endpoint = find(checks, "eip155:1 127.0.0.1:9#1");
    expect(endpoint).toMatchObject({ status: "fault", unreadable: true });
    expect(JSON.stringify(endpoint)).not.toContain("secret");
    expect(find(checks, "clocks")).toMatchObject({ status: "warning" });
    expect(find(checks, "clocks")?.seen).toMatch(/(?:89|90)(?:\.\d)? s behind tallyd's database/);
  });

  test("behavior: a test message is sent only when asked for", async () => {
    const sent: string[] = [];
    const env = { SLACK_WEBHOOK_URL: "http://127.0.0.1:9/hook" };
    const checks = await doctor({
      env,
      deps: {
        sendTest: (hook) => {
          sent.push(hook);
          return Promise.resolve({ kind: "dead", reason: "no_service" });
        },
      },
    });
    expect(sent).toEqual(["slack"]);
    expect(find(checks, "SLACK_WEBHOOK_URL")).toMatchObject({ status: "remark" });
    expect(find(checks, "SLACK_WEBHOOK_URL test")).toMatchObject({ status: "fault" });
    expect(find(await doctor({ env }), "SLACK_WEBHOOK_URL test")).toBeUndefined();
  });

  test("behavior: programs are named, tested on request, and a dead one is a fault", async () => {
    const env = {
      WEBHOOK_URL: "http://127.0.0.1:9/hook?key=secretpart",
      WEBHOOK_SECRET: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      PAGERDUTY_ROUTING_KEY: "0123456789abcdef0123456789abcdef",
    };
    await own.pool.query(
      `insert into tallyd.hook (channel, failing_since, last_error, last_error_code)
       values ('webhook', now(), 'HTTP 410', 'dead')`,
    );
    const sent: string[] = [];
    const checks = await doctor({
      env,
      deps: {
        sendProgramTest: (channel) => {
          sent.push(channel);
          return Promise.resolve({ kind: "sent" });
        },
      },
    });
    await own.pool.query("delete from tallyd.hook");
    expect(sent).toEqual(["webhook", "pagerduty"]);
    expect(find(checks, "Slack")).toMatchObject({
      ...{
        status: "remark",
        meaning: "alerts go to the log alone, beside the webhook and PagerDuty",
      },
    });
    expect(find(checks, "WEBHOOK_URL")?.seen).toBe("alerts go to 127.0.0.1:9");
    expect(find(checks, "PAGERDUTY_ROUTING_KEY test")).toMatchObject({ status: "ok" });
    expect(find(checks, "alerts: webhook")).toMatchObject({ status: "fault", unreadable: true });
    expect(JSON.stringify(checks)).not.toMatch(/secretpart|MfKQ9r8G|0123456789abcdef0123/);
    expect(find(await doctor({ env }), "WEBHOOK_URL test")).toBeUndefined();
  });

  test("behavior: a budget that the beats overrun", async () => {
    const checks = await doctor({ env: { EVENTS_BEAT: "1m" } });
    expect(find(checks, "read budget")).toMatchObject({ status: "warning" });
    expect(budgetLines(settingsOf({}))).toEqual([
      { reader: "webhooks", beat: "as they come", reads: 0 },
      { reader: "events list", beat: "10m", reads: 4_320 },
      { reader: "object lists", beat: "1h", reads: 2_880 },
      { reader: "each ambiguous intent", beat: "its ladder", reads: 6 },
    ]);
  });
});

describe("formatDoctor", () => {
  test("default", () => {
    const words = { seen: "x", meaning: "y", advice: "z" };
    const checks = [fine("a", "b"), told("c", "warning", words), unreadable("d", "e", "f")];
    expect(formatDoctor(checks)).toBe(
      [
        "ok      a: b",
        "WARNING c: x",
        "        y",
        "        -> z",
        "FAULT   d: e",
        "        its health is unknown",
        "        -> f",
        "",
        "1 faults, 1 warnings, 0 remarks, 1 in order",
      ].join("\n"),
    );
  });
});
