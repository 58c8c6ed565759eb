/**
 * Goal: the public port stores what Stripe signed before it says 200, and says what it refused.
 * Method: real HTTP on a free port, headers of the official SDK, PostgreSQL behind a line that can
 * be cut (cases B14, B15, B18).
 */
import { createConnection, createServer } from "node:net";
import type { Socket } from "node:net";

import Stripe from "stripe";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { silentLog } from "../../src/core/log.ts";
import { WEBHOOK_PATH, startWebhookServer } from "../../src/http/webhook-server.ts";
import type { WebhookServer } from "../../src/http/webhook-server.ts";
import { applyInbox } from "../../src/ingest/apply.ts";
import { openPool } from "../../src/store/pool.ts";
import { readTallies } from "../../src/store/tallies.ts";
import type { Tally } from "../../src/store/tallies.ts";
import { PERSONAL, SETTINGS, at, charge, event, paid } from "../sources/stripe/shapes.ts";
import { createTestDb, emptyTables } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

const SECRET = "whsec_current";
const OLD_SECRET = "whsec_rolled";
const stripe = new Stripe("sk_test_webhooks");

let db: TestDb;
let line: Line;
let server: WebhookServer;
let nowSecond = 0;
let wakes = 0;

interface Line {
  readonly url: string;
  cut: boolean;
  readonly close: () => Promise<void>;
}

/** A TCP line to the database that can be cut. */
async function startLine(databaseUrl: string): Promise<Line> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const relay = createServer((near) => {
    if (state.cut) {
      near.destroy();
      return;
    }
    const far = createConnection(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => sockets.delete(socket));
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => {
    relay.listen(0, "127.0.0.1", resolve);
  });
  const address = relay.address();
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = typeof address === "object" && address !== null ? String(address.port) : "";
  let cut = false;
  const state = {
    url: url.href,
    get cut(): boolean {
      return cut;
    },
    set cut(value: boolean) {
      cut = value;
      if (value) for (const socket of sockets) socket.destroy();
    },
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        relay.close(() => {
          resolve();
        });
      }),
  };
  return state;
}

beforeAll(async () => {
  db = await createTestDb();
  line = await startLine(db.url);
});
afterAll(async () => {
  await line.close();
  await db.close();
});
beforeEach(async () => {
  await emptyTables(db.pool, ["tallyd.inbox", "tallyd.tally", "tallyd.charge", "tallyd.changed"]);
  nowSecond = 0;
  wakes = 0;
  const pool = openPool({ url: line.url, applicationName: "tallyd-test", max: 4 });
  server = await start({ pool, webhookSecrets: [SECRET, OLD_SECRET] });
});
afterEach(async () => {
  line.cut = false;
  await server.close();
});

async function start(options: {
  pool: ReturnType<typeof openPool>;
  webhookSecrets: readonly string[];
}): Promise<WebhookServer> {
  const started = await startWebhookServer(
    {
      pool: options.pool,
      settings: { ...SETTINGS, webhookSecrets: options.webhookSecrets },
      clock: { now: () => at(nowSecond) },
      log: silentLog,
      onStored: () => {
        wakes += 1;
      },
    },
    { host: "127.0.0.1", port: 0 },
  );
  return {
    port: started.port,
    close: async () => {
      await started.close();
      if (!options.pool.ended) await options.pool.end();
    },
  };
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

async function send(path: string, init: RequestInit): Promise<Reply> {
  const response = await fetch(`http://127.0.0.1:${String(server.port)}${path}`, init);
  const text = await response.text();
  const body: unknown = text === "" ? null : JSON.parse(text);
  return { status: response.status, headers: response.headers, body };
}

function deliver(
  body: unknown,
  options: { second?: number; secret?: string; headers?: Record<string, string> } = {},
): Promise<Reply> {
  const payload = typeof body === "string" ? body : JSON.stringify(body);
  const signature = stripe.webhooks.generateTestHeaderString({
    payload,
    secret: options.secret ?? SECRET,
    timestamp: at(options.second ?? 0).getTime() / 1000,
  });
  return send(WEBHOOK_PATH, {
    method: "POST",
    body: payload,
    headers: {
      "content-type": "application/json; charset=utf-8",
      "stripe-signature": signature,
      ...options.headers,
    },
  });
}

async function inbox(): Promise<Record<string, unknown>[]> {
  const result = await db.pool.query<Record<string, unknown>>(
    "select event_id, status, deliveries, scope from tallyd.inbox order by event_id",
  );
  return result.rows;
}

/** Tallies after the counts were written: closing writes them. */
async function tallies(): Promise<ReadonlyMap<string, Tally>> {
  await server.close();
  return readTallies(db.pool);
}

const succeeded = event("charge.succeeded", charge());

describe("accepting", () => {
  test("default", async () => {
    const reply = await deliver(succeeded);
    expect(reply).toMatchObject({ status: 200, body: { received: true, stored: "new" } });
    expect(reply.headers.get("x-powered-by")).toBeNull();
    expect(await inbox()).toEqual([
      { event_id: "evt_1", status: "pending", deliveries: 1, scope: "platform/test" },
    ]);
    expect(wakes).toBe(1);
    expect((await deliver(succeeded)).body).toEqual({ received: true, stored: "duplicate" });
  });

  test("behavior: twenty deliveries at once are one event (B14)", async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => deliver(succeeded)));
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200]));
    const stored = replies.map((reply) => (reply.body as { stored: string }).stored).sort();
    expect(stored).toEqual([...Array.from({ length: 19 }, () => "duplicate"), "new"]);
    expect(await inbox()).toMatchObject([{ event_id: "evt_1", deliveries: 20 }]);
  });

  test("behavior: the secret of a roll is taken too", async () => {
    expect((await deliver(succeeded, { secret: OLD_SECRET })).status).toBe(200);
  });

  test("behavior: a late retry of an old event (B18 a)", async () => {
    nowSecond = 2 * 86_400;
    expect((await deliver(succeeded, { second: nowSecond - 10 })).status).toBe(200);
  });

  test("behavior: an hour in the inbox is no second check (B18 c)", async () => {
    await deliver(succeeded, { second: -10 });
    const clock = { now: () => at(3600) };
    const applied = await applyInbox({ pool: db.pool, clock, log: silentLog }, { limit: 10 });
    expect(applied).toMatchObject({ applied: 1, left: 0 });
  });

  test("behavior: hundreds at once are all stored", async () => {
    const ids = Array.from({ length: 300 }, (_, index) => `evt_${String(index)}`);
    const replies = await Promise.all(ids.map((id) => deliver({ ...succeeded, id })));
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200]));
    expect((await inbox()).map((row) => row["event_id"]).sort()).toEqual([...ids].sort());
  });

  test("behavior: NUL bytes and broken surrogates are stored (marks without them)", async () => {
    const metadata = { intent_id: "i\u0000-1", order: "o-\ud800" };
    expect((await deliver(event("charge.succeeded", charge({ metadata })))).status).toBe(200);
    const body = await db.pool.query<{ mark: string }>(
      "select body #>> '{facts,0,intentMark}' as mark from tallyd.inbox",
    );
    expect(body.rows).toEqual([{ mark: "i-1" }]);
  });

  test("behavior: personal data is never at rest", async () => {
    await deliver(event("payment_intent.succeeded", paid({ latest_charge: charge() })));
    await deliver(event("customer.created", { ...charge(), object: "customer", id: "cus_1" }));
    const rows = await db.pool.query<{ row: string }>("select i::text as row from tallyd.inbox i");
    expect(rows.rows.length).toBeGreaterThan(0);
    for (const word of PERSONAL) expect(JSON.stringify(rows.rows)).not.toContain(word);
  });
});

describe("not ours", () => {
  test("behavior: other accounts and modes are counted and not stored (B20)", async () => {
    const foreign = await deliver({ ...succeeded, account: "acct_x" });
    const live = await deliver({ ...succeeded, livemode: true });
    expect([foreign, live].map((reply) => [reply.status, reply.body])).toEqual([
      [200, { received: true, stored: "ignored" }],
      [200, { received: true, stored: "ignored" }],
    ]);
    expect(await inbox()).toEqual([]);
    const counted = await tallies();
    expect(counted.get("foreign_account")).toMatchObject({ total: 1n, recent: ["acct_x"] });
    expect(counted.get("other_mode")).toMatchObject({ total: 1n });
  });

  test("behavior: event types that are not read are remembered without a body", async () => {
    const payout = event("payout.paid", { object: "payout", id: "po_1" });
    expect((await deliver(payout)).body).toEqual({ received: true, stored: "ignored" });
    expect(await inbox()).toMatchObject([{ event_id: "evt_1", status: "ignored" }]);
    expect(wakes).toBe(0);
  });
});

describe("refusing", () => {
  const codeOf = (reply: Reply): [number, string] => [
    reply.status,
    (reply.body as { error: { code: string } }).error.code,
  ];

  test("error: signatures", async () => {
    const json = { "content-type": "application/json" };
    const bare = await send(WEBHOOK_PATH, { method: "POST", body: "{}", headers: json });
    expect(codeOf(bare)).toEqual([400, "signature_missing"]);
    const odd = await deliver(succeeded, { headers: { "stripe-signature": "hello" } });
    expect(codeOf(odd)).toEqual([400, "signature_malformed"]);
    const wrong = await deliver(succeeded, { secret: "whsec_other" });
    expect(codeOf(wrong)).toEqual([400, "signature_mismatch"]);
    expect(codeOf(await deliver(succeeded, { second: 400 }))).toEqual([400, "signature_future"]);
    expect(await inbox()).toEqual([]);
  });

  test("error: ten right signatures with a stale time tell the skew (B18 b)", async () => {
    nowSecond = 400;
    for (let index = 0; index < 10; index += 1) {
      const reply = await deliver(succeeded, { second: index - 5 });
      expect(codeOf(reply)).toEqual([400, "signature_stale"]);
    }
    const stale = (await tallies()).get("stale_valid");
    expect(stale).toMatchObject({ total: 10n, streak: 10n });
    expect(stale?.recent).toEqual([405, 404, 403, 402, 401, 400, 399, 398, 397, 396]);
  });

  test("behavior: a success ends the streaks", async () => {
    for (let index = 0; index < 3; index += 1) await deliver(succeeded, { secret: "whsec_other" });
    await deliver(succeeded);
    await deliver(succeeded, { secret: "whsec_other" });
    expect((await tallies()).get("signature_failure")).toMatchObject({ total: 4n, streak: 1n });
  });

  test("error: bodies", async () => {
    expect(codeOf(await deliver("{not json"))).toEqual([400, "bad_json"]);
    expect(codeOf(await deliver([1, 2]))).toEqual([400, "not_an_event"]);
    expect(codeOf(await deliver(""))).toEqual([400, "bad_json"]);
    const text = { headers: { "content-type": "text/plain" } };
    expect(codeOf(await deliver(succeeded, text))).toEqual([415, "unsupported_content_type"]);
    const zipped = { headers: { "content-encoding": "gzip" } };
    expect(codeOf(await deliver(succeeded, zipped))).toEqual([415, "unsupported_encoding"]);
  });

  test("error: a body of 5 MB", async () => {
    const large = { ...succeeded, padding: "x".repeat(5_000_000) };
    expect(codeOf(await deliver(large))).toEqual([413, "body_too_large"]);
    expect((await deliver(succeeded)).status).toBe(200);
    expect((await tallies()).get("oversize")).toMatchObject({ total: 1n });
  });

  test("error: other methods and other paths", async () => {
    for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const reply = await send(WEBHOOK_PATH, { method });
      expect(codeOf(reply)).toEqual([405, "method_not_allowed"]);
      expect(reply.headers.get("allow")).toBe("POST");
    }
    for (const path of ["/", "/healthz", "/metrics", "/webhooks", "/webhooks/stripe/x", "/%zz"]) {
      const reply = await send(path, { method: "POST" });
      expect([400, 404]).toContain(reply.status);
      expect(reply.headers.get("content-type")).toContain("application/json");
    }
  });

  test("error: no secret is set", async () => {
    const pool = openPool({ url: db.url, applicationName: "tallyd-test", max: 2 });
    await server.close();
    server = await start({ pool, webhookSecrets: [] });
    expect(codeOf(await deliver(succeeded))).toEqual([503, "secret_unset"]);
  });
});

describe("the database is away", () => {
  test("behavior: 503 and nothing kept, then accepted (B15)", async () => {
    expect((await deliver({ ...succeeded, id: "evt_0" })).status).toBe(200);
    line.cut = true;
    const refused = await Promise.all([deliver(succeeded), deliver(succeeded)]);
    expect(refused.map((reply) => reply.status)).toEqual([503, 503]);
    expect(wakes).toBe(1);
    line.cut = false;
    expect((await deliver(succeeded)).body).toEqual({ received: true, stored: "new" });
    expect(await inbox()).toMatchObject([{ event_id: "evt_0" }, { event_id: "evt_1" }]);
  });

  test("behavior: one event that the database refuses does not take others along", async () => {
    await db.pool.query(
      "alter table tallyd.inbox add constraint no_bad check (event_id <> 'evt_bad')",
    );
    try {
      const ids = ["evt_1", "evt_bad", "evt_2", "evt_3"];
      const replies = await Promise.all(ids.map((id) => deliver({ ...succeeded, id })));
      expect(replies.map((reply) => reply.status)).toEqual([200, 503, 200, 200]);
    } finally {
      await db.pool.query("alter table tallyd.inbox drop constraint no_bad");
    }
  });
});

test("behavior: closing answers what is under way and then refuses", async () => {
  const under = Array.from({ length: 10 }, (_, index) =>
    deliver({ ...succeeded, id: `evt_${String(index)}` }),
  );
  await Promise.race(under);
  await server.close();
  const replies = await Promise.allSettled(under);
  const answered = replies.filter((reply) => reply.status === "fulfilled");
  const ok = answered.filter((reply) => reply.value.status === 200);
  // Whoever was told 200 is stored; connections that were not open yet may be refused.
  expect(ok.length).toBeGreaterThan(0);
  expect((await inbox()).length).toBeGreaterThanOrEqual(ok.length);
  await expect(deliver(succeeded)).rejects.toThrow(/fetch failed/);
});
