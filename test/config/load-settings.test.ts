/**
 * Goal: every setting is read from both layers, and every fault is told at once and without
 * secrets.
 * Method: loadSettings over plain objects and a file that lives in a variable.
 */
import { describe, expect, test } from "vitest";

import { CATALOG } from "../../src/config/catalog.ts";
import { describeSettings } from "../../src/config/describe.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { keysAt } from "../../src/config/schema.ts";
import { ConfigError } from "../../src/core/errors.ts";
import type { Settings } from "../../src/core/settings.ts";

function load(env: Record<string, string>, file?: unknown): Settings {
  const text = typeof file === "string" ? file : JSON.stringify(file);
  const all = file === undefined ? env : { TALLYD_CONFIG: "tallyd.json", ...env };
  return loadSettings({ env: all, readFile: () => text });
}

function faultsOf(env: Record<string, string>, file?: unknown): readonly string[] {
  try {
    load(env, file);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

// The file of the outside contract, word for word apart from the shortened addresses.
const CONTRACT_FILE = {
  intents: {
    table: "shop.payments",
    columns: {
      intentId: "order_no",
      accountId: "'shop'",
      amount: "cents",
      currency: "lower(cur)",
      idempotencyKey: "idem",
      state: "status",
      chargeId: "stripe_id",
      response: "response",
      createdAt: "created",
      updatedAt: "modified",
      reference: "meta->>'order'",
    },
    states: { PENDING: "in_flight", PAID: "recorded", UNKNOWN: "reconciling" },
    write: { state: "status", chargeId: "stripe_id", response: "response" },
    timeZone: "Europe/Berlin",
  },
  stripe: {
    metadataKey: "intent_id",
    referenceKey: "order",
    owned: { metadata: { app: "shop" } },
    subscriptions: "ignore",
    accounts: ["acct_1"],
    livemode: true,
  },
  chains: [
    {
      chainId: "eip155:8453",
      rpcUrls: ["https://one.example", "https://two.example"],
      tokens: ["USDC", { address: `0x${"Ab".repeat(20)}`, symbol: "X" }],
      payers: [],
      payees: [`0x${"cd".repeat(20)}`],
      startBlock: 123,
      finality: "safe",
    },
  ],
  rules: {
    inFlightLimit: "10m",
    orphanGrace: "2m",
    duplicateWindow: "24h",
    similarWindow: "10m",
    allowRepeats: [{ payee: `0x${"ef".repeat(20)}`, maxAmount: "1000" }],
    ladder: { stripe: ["1m", "5m", "30m", "2h", "12h", "24h"], evm: ["15s", "1m", "5m", "30m"] },
    spendCaps: [{ per: "day", currency: "usd", amount: "500000" }],
  },
};

describe("loadSettings", () => {
  test("default", () => {
    const settings = load({});
    expect(settings).toMatchObject({
      configFile: null,
      warnings: [],
      databaseUrl: null,
      dataDir: "./.tallyd",
      port: 4242,
      host: "0.0.0.0",
      adminPort: 4243,
      adminHost: "127.0.0.1",
      adminToken: null,
      resolve: "write",
      chains: [],
      firstLookbackMs: 48 * HOUR,
      timeZone: "UTC",
      logLevel: "info",
      intents: {
        databaseUrl: null,
        table: "public.payment_intents",
        columns: null,
        write: null,
        timeZone: null,
        create: true,
      },
      stripe: { apiKey: null, webhookSecrets: [], apiBase: null, accounts: [], readsPerSecond: 20 },
    });
    expect(settings.intents.states["in_flight"]).toBe("in_flight");
    expect(settings.rules).toMatchObject({
      inFlightLimitMs: 10 * MINUTE,
      asyncLimitMs: 14 * 24 * HOUR,
      orphanGraceMs: 2 * MINUTE,
      retryHorizonMs: 24 * HOUR,
      duplicateWindowMs: 24 * HOUR,
      similarWindowMs: 10 * MINUTE,
      attemptWindowMs: 6 * MINUTE,
      safetyLagMs: MINUTE,
      clockSlackMs: 5 * MINUTE,
      ladder: { stripe: [MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 12 * HOUR, 24 * HOUR] },
    });
    expect(settings.beats).toEqual({
      localMs: 5_000,
      localFullMs: 15 * MINUTE,
      eventsMs: 10 * MINUTE,
      listsMs: HOUR,
      auditMs: 24 * HOUR,
      chainsMs: 15_000,
    });
  });

  test("behavior: the file of the outside contract is accepted as printed", () => {
    const settings = load({}, CONTRACT_FILE);
    expect(settings.intents.columns?.reference).toBe("meta->>'order'");
    expect(settings.intents.states).toMatchObject({ PAID: "recorded", recorded: "recorded" });
    expect(settings.intents.create).toBe(false);
    expect(settings.stripe).toMatchObject({ livemode: true, accounts: ["acct_1"] });
    expect(settings.rules.spendCaps).toEqual([{ per: "day", currency: "usd", amount: 500_000n }]);
    expect(settings.rules.allowRepeats[0]?.maxAmount).toBe(1_000n);
    expect(settings.chains).toHaveLength(1);
  });

  test("behavior: the environment wins over the file, flat names equal nested ones", () => {
    const file = { inFlightLimit: "20m", stripe: { apiBase: "http://file.example" }, port: 1 };
    const settings = load({ STRIPE_API_BASE: "http://env.example/", PORT: "0" }, file);
    expect(settings.rules.inFlightLimitMs).toBe(20 * MINUTE);
    expect(settings.stripe.apiBase).toBe("http://env.example");
    expect(settings.port).toBe(0);
  });

  test.each([
    ["90s", 90_000],
    ["10m", 600_000],
    ["24h", 86_400_000],
    ["7d", 604_800_000],
    ["500ms", 500],
    ["0s", 0],
  ])("behavior: duration %s", (text, ms) => {
    expect(load({ ORPHAN_GRACE: text }).rules.orphanGraceMs).toBe(ms);
  });

  test.each(["10", "1.5h", "-1m", "10 m", "10min", "m", "99999999999d", "PT10M"])(
    "error: duration %s",
    (text) => {
      const faults = faultsOf({ ORPHAN_GRACE: text });
      expect(faults).toHaveLength(1);
      expect(faults[0]).toContain(`ORPHAN_GRACE: saw ${JSON.stringify(text)}; allowed: `);
    },
  );

  test("behavior: several webhook secrets are trimmed", () => {
    const settings = load({ STRIPE_WEBHOOK_SECRET: " whsec_a , whsec_b " });
    expect(settings.stripe.webhookSecrets).toEqual(["whsec_a", "whsec_b"]);
  });

  test.each(["whsec_a,", " ", "whsec_a,,whsec_b", "sk_test_a", "whsec_"])(
    "error: webhook secrets %j",
    (text) => {
      expect(faultsOf({ STRIPE_WEBHOOK_SECRET: text })[0]).toMatch(/^STRIPE_WEBHOOK_SECRET: /);
    },
  );

  test("error: all faults at once, named, without secrets", () => {
    const secret = "pk_live_VerySecretValue1234";
    const faults = faultsOf({
      DATABASE_URL: "mysql://user:hunter2@db.example/shop",
      STRIPE_API_KEY: secret,
      PORT: "65536",
      RESOLVE: "maybe",
      IN_FLIGHT_LIMIT: "soon",
      ADMIN_HOST: "0.0.0.0",
      STRIPE_ACCOUNTS: "shop",
      SPEND_CAPS: '[{"per":"week","currency":"usd","amount":5}]',
      LADDER_STRIPE: "5m,1m",
      EVM_CHAINS: "not json",
      INTENTS_TIME_ZONE: "CEST",
    });
    const names = faults.map((fault) => fault.split(":")[0]).sort();
    expect(names).toEqual([
      "ADMIN_TOKEN",
      "DATABASE_URL",
      "EVM_CHAINS",
      "INTENTS_TIME_ZONE",
      "IN_FLIGHT_LIMIT",
      "LADDER_STRIPE",
      "PORT",
      "RESOLVE",
      "SPEND_CAPS.0.amount",
      "SPEND_CAPS.0.per",
      "STRIPE_ACCOUNTS",
      "STRIPE_API_KEY",
    ]);
    const all = faults.join("\n");
    expect(all).not.toContain("hunter2");
    expect(all).not.toContain("VerySecret");
    expect(all).toContain("pk_l…(27 characters)");
    for (const fault of faults) expect(fault).toContain("allowed: ");
  });

  test("error: unknown keys of the file name the nearest known one", () => {
    const faults = faultsOf(
      {},
      { inflightlimit: "1m", rules: { orphan_grace: "1m" }, intents: { columns: { amonut: "x" } } },
    );
    expect(faults).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^inflightlimit: .*did you mean inFlightLimit\?/),
        expect.stringMatching(/^rules\.orphan_grace: .*did you mean orphanGrace\?/),
        expect.stringMatching(/^intents\.columns\.amonut: .*did you mean amount\?/),
      ]),
    );
    expect(faults).toHaveLength(3);
  });

  test("behavior: reminders grow, start at a minute, and may be off", () => {
    expect(load({}).remindersMs).toEqual([30 * MINUTE, 2 * HOUR, 24 * HOUR]);
    expect(load({ REMINDERS: "off" }).remindersMs).toEqual([]);
    expect(load({ REMINDERS: "1m, 7d" }).remindersMs).toEqual([MINUTE, 168 * HOUR]);
    for (const bad of ["0", "30s", "2h,30m", "1h,1h", "1h,,2h", "soon", ","]) {
      expect(faultsOf({ REMINDERS: bad })).toEqual([
        expect.stringMatching(/^REMINDERS: saw .*allowed: off, or 1 to 10 growing durations/),
      ]);
    }
  });

  test("behavior: a webhook needs address and key, both as the specification has them", () => {
    const whole = {
      WEBHOOK_URL: "https://alerts.example/in/?team=1",
      WEBHOOK_SECRET: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    };
    expect(load(whole).webhook).toEqual({
      ...{ url: whole.WEBHOOK_URL, secrets: [whole.WEBHOOK_SECRET] },
    });
    const two = `${whole.WEBHOOK_SECRET},whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD`;
    expect(load({ ...whole, WEBHOOK_SECRET: two }).webhook?.secrets).toHaveLength(2);
    expect(faultsOf({ ...whole, WEBHOOK_SECRET: `${two},${two}` })).toHaveLength(1);
    expect(faultsOf({ WEBHOOK_URL: whole.WEBHOOK_URL })).toEqual([
      "WEBHOOK_SECRET: saw nothing while WEBHOOK_URL is set; allowed: both, or neither",
    ]);
    expect(faultsOf({ WEBHOOK_SECRET: whole.WEBHOOK_SECRET })).toHaveLength(1);
    for (const secret of ["whsec_c2hvcnQ=", "plaintextplaintextplaintext", "whsec_not*base64"]) {
      const [fault] = faultsOf({ ...whole, WEBHOOK_SECRET: secret });
      expect(fault).toMatch(/^WEBHOOK_SECRET: saw .*24 to 64 bytes/);
      expect(fault).not.toContain(secret);
    }
    expect(faultsOf({ ...whole, WEBHOOK_URL: "https://me:pw@alerts.example" })).toHaveLength(1);
  });

  test("behavior: PagerDuty's key has 32 characters, its address is its own by default", () => {
    const routingKey = "0123456789abcdef0123456789abcdef";
    expect(load({ PAGERDUTY_ROUTING_KEY: routingKey }).pagerDuty).toEqual({
      routingKey,
      apiBase: "https://events.pagerduty.com",
    });
    expect(load({}).pagerDuty).toBeNull();
    expect(faultsOf({ PAGERDUTY_ROUTING_KEY: "short" })[0]).toMatch(/32 letters and digits/);
  });

  test("behavior: Slack's signing secret has 32 hexadecimal digits", () => {
    const secret = "8f742231b10e8888abcd99aa00bb85a5";
    const settings = load({ SLACK_SIGNING_SECRET: secret });
    expect(settings.slackSigningSecret).toBe(secret);
    expect(settings.warnings).toEqual([expect.stringContaining("no message carries buttons")]);
    expect(faultsOf({ SLACK_SIGNING_SECRET: "xoxb-1" })[0]).toMatch(/32 hexadecimal digits/);
  });

  test("behavior: unknown names of the environment only warn", () => {
    const { warnings } = load({ STRIPE_API_KEYS: "x", TALLYD_FOO: "1", OTHER: "y" });
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain("did you mean STRIPE_API_KEY?");
  });

  test.each([
    ["not JSON", "{", /is not JSON/],
    ["a list", "[]", /holds a list/],
  ])("error: a file that is %s", (_, text, message) => {
    expect(faultsOf({ PORT: "x" }, text)).toEqual([
      expect.stringMatching(message),
      expect.stringMatching(/^PORT: /),
    ]);
  });

  test("error: a file that is not there", () => {
    const readFile = (): string => {
      throw Object.assign(new Error("no"), { code: "ENOENT" });
    };
    expect(() => loadSettings({ env: { TALLYD_CONFIG: "/x.json" }, readFile })).toThrow(
      /TALLYD_CONFIG: saw "\/x.json", which cannot be read \(no such file\)/,
    );
  });

  test("error: one setting given flat and nested", () => {
    const faults = faultsOf({}, { inFlightLimit: "1m", rules: { inFlightLimit: "2m" } });
    expect(faults).toEqual([expect.stringContaining("also given as rules.inFlightLimit")]);
  });

  test("error: a canonical state cannot mean another, a mapping cannot write without columns", () => {
    const intents = { states: { recorded: "in_flight", PAID: "paid" }, write: { state: "s" } };
    expect(faultsOf({}, { intents }).map((fault) => fault.split(/[: ]/)[0])).toEqual([
      "intents.states.PAID",
      "intents.states.recorded",
      "intents.write",
    ]);
  });

  test.each([
    [{}, true],
    [{ STRIPE_API_BASE: "http://127.0.0.1:1" }, false],
    [{ STRIPE_API_KEY: "rk_test_1" }, false],
    [{ STRIPE_API_KEY: "sk_live_1", STRIPE_API_BASE: "http://127.0.0.1:1" }, true],
    [{ STRIPE_LIVEMODE: "false" }, false],
  ])("behavior: mode of %j", (env, livemode) => {
    expect(load(env as Record<string, string>).stripe.livemode).toBe(livemode);
  });

  test("error: mode and key contradict each other", () => {
    const faults = faultsOf({ STRIPE_API_KEY: "rk_test_1" }, { stripe: { livemode: true } });
    expect(faults).toEqual([expect.stringMatching(/^STRIPE_LIVEMODE: saw true .* test key/)]);
  });

  test.each([
    [{ ADMIN_HOST: "::1" }, 0],
    [{ ADMIN_HOST: "localhost" }, 0],
    [{ ADMIN_HOST: "10.0.0.1" }, 1],
    [{ ADMIN_HOST: "10.0.0.1", ADMIN_TOKEN: "0123456789abcdef" }, 0],
    [{ PORT: "4243" }, 1],
    [{ PORT: "0", ADMIN_PORT: "0" }, 0],
  ])("behavior: listeners %j", (env, count) => {
    expect(faultsOf(env as Record<string, string>)).toHaveLength(count);
  });

  test.each([
    [{ INTENTS_TABLE: "public.payment_intents" }, false],
    [{ INTENTS_DATABASE_URL: "postgres://h/d" }, false],
    [{ INTENTS_TABLE: "x", INTENTS_CREATE: "true" }, true],
    [{ DATABASE_URL: "postgresql:///d?host=/run/postgresql" }, true],
  ])("behavior: creation with %j", (env, create) => {
    expect(load(env as Record<string, string>).intents.create).toBe(create);
  });
});

describe("catalogue", () => {
  test("behavior: every entry is a path of the schema, and every path has an entry", () => {
    const paths = (at: readonly string[]): string[] => {
      const keys = keysAt(at);
      const path = at.join(".");
      const opaque = ["intents.columns", "intents.write", "stripe.owned"].includes(path);
      if (keys.length === 0 || opaque) return [path];
      return keys.flatMap((key) => paths([...at, key]));
    };
    const listed = CATALOG.flatMap((entry) => (entry.path === null ? [] : [entry.path]));
    expect([...listed].sort()).toEqual(paths([]).sort());
    expect(new Set(CATALOG.map((entry) => entry.env ?? entry.path)).size).toBe(CATALOG.length);
  });

  test("behavior: settings are described whole and without secrets", () => {
    const shown = describeSettings(
      load({
        DATABASE_URL: "postgres://user:hunter2@db.example/shop",
        STRIPE_API_KEY: "rk_test_0123456789abcdef",
        STRIPE_WEBHOOK_SECRET: "whsec_0123456789abcdef",
        SLACK_WEBHOOK_URL: "https://hooks.slack.com/services/T0/B0/Secret",
        ADMIN_TOKEN: "0123456789abcdef0123",
      }),
    );
    for (const [name, text] of Object.entries(shown)) {
      if (name !== "STRIPE_ACCOUNTS") expect(text, name).not.toBe("");
    }
    expect(JSON.stringify(shown)).not.toMatch(/hunter2|6789abcdef|Secret/);
    expect(shown["IN_FLIGHT_LIMIT"]).toBe("10m");
    expect(shown["DATABASE_URL"]).toBe("postgres://user:***@db.example/shop");
  });
});
