import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BugError, ConfigError, UnreadableError } from "../../../src/core/errors.ts";
import { startStripeSandbox } from "../../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../../src/sandbox/stripe/server.ts";
import { openStripe } from "../../../src/sources/stripe/client.ts";
import type { StripeReader } from "../../../src/sources/stripe/client.ts";
import { readOnlyHttp } from "../../../src/sources/stripe/read-only-http.ts";
import { isReadableId } from "../../../src/sources/stripe/stripe-object.ts";
import {
  ACCOUNT,
  ACCOUNT_SCOPE,
  createTestClock,
  createTestTimer,
  KEY,
  openClient,
  PLATFORM_SCOPE,
  secondsAt,
} from "./stripe-world.ts";
import type { TestTimer } from "./stripe-world.ts";

let sandbox: StripeSandbox;
let client: StripeReader;
let timer: TestTimer;
const clock = createTestClock();
let sent: string[];

beforeEach(async () => {
  sandbox = await startStripeSandbox({ now: () => clock.ms });
  timer = createTestTimer();
  sent = [];
  const count = (scope: string, endpoint: string): void => {
    sent.push(`${scope} ${endpoint}`);
  };
  client = openClient(sandbox.url, { clock, timer, random: () => 0, count });
});

afterEach(async () => {
  await sandbox.close();
});

async function failure(read: Promise<unknown>): Promise<UnreadableError> {
  const error: unknown = await read.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error instanceof UnreadableError) return error;
  throw new Error(`an UnreadableError was expected, got ${String(error)}`);
}

const CHARGES = { created: { from: secondsAt(-3_600_000), to: secondsAt(0) } };

describe("reading", () => {
  test("default: an object of each kind by its id, and nothing but GET goes out", async () => {
    const intent = sandbox.control.seed.paymentIntent({ id: "pi_1" });
    const chargeId = intent.latest_charge ?? "";
    sandbox.control.seed.charge({ id: "py_1" });
    sandbox.control.seed.refund({ id: "re_1", charge: chargeId });
    const dispute = sandbox.control.dispute("py_1");
    const event = sandbox.control.events()[0]?.id ?? "";
    for (const id of ["pi_1", chargeId, "py_1", "re_1", dispute.id, event]) {
      expect(await client.retrieve(PLATFORM_SCOPE, id)).toMatchObject({
        kind: "found",
        object: { id },
      });
    }
    for (const list of ["payment_intents", "charges", "refunds", "disputes", "events"] as const) {
      const page = await client.list(PLATFORM_SCOPE, list, {});
      expect(page).toMatchObject({ kind: "page" });
    }
    expect(await client.account()).toMatchObject({ object: "account" });
    expect(new Set(sandbox.control.requests.map((request) => request.method))).toEqual(
      new Set(["GET"]),
    );
    expect(sandbox.control.requests).toHaveLength(sent.length);
    expect(sandbox.control.requests[0]?.userAgent).toContain("tallyd");
  });

  test("behavior: a payment intent brings its latest charge along", async () => {
    sandbox.control.seed.paymentIntent({ id: "pi_1", charge: { id: "ch_1" } });
    const read = await client.retrieve(PLATFORM_SCOPE, "pi_1");
    expect(read).toMatchObject({ object: { latest_charge: { id: "ch_1", object: "charge" } } });
  });

  test("behavior: objects of a connected account are asked for in its name (B20)", async () => {
    sandbox.control.seed.charge({ id: "ch_c", account: ACCOUNT });
    expect(await client.retrieve(PLATFORM_SCOPE, "ch_c")).toEqual({ kind: "missing" });
    expect(await client.retrieve(ACCOUNT_SCOPE, "ch_c")).toMatchObject({ kind: "found" });
    const page = await client.list(ACCOUNT_SCOPE, "charges", {});
    expect(page.kind === "page" && page.objects.map((object) => object.id)).toEqual(["ch_c"]);
    expect(sandbox.control.requests.at(-1)?.account).toBe(ACCOUNT);
    expect(sent).toEqual([
      `${PLATFORM_SCOPE} charges`,
      `${ACCOUNT_SCOPE} charges`,
      `${ACCOUNT_SCOPE} charges`,
    ]);
  });

  test("behavior: bounds are half-open and pages follow the cursor", async () => {
    for (const offset of [-1, 0, 1, 2]) {
      const id = `ch_${String(offset + 1)}`;
      sandbox.control.seed.charge({ id, created: secondsAt(offset * 1_000) });
    }
    const created = { from: secondsAt(0), to: secondsAt(2_000) };
    const first = await client.list(PLATFORM_SCOPE, "charges", { created, limit: 1 });
    expect(first).toMatchObject({ objects: [{ id: "ch_2" }], hasMore: true });
    const params = { created, limit: 1, startingAfter: "ch_2" };
    const second = await client.list(PLATFORM_SCOPE, "charges", params);
    expect(second).toMatchObject({ objects: [{ id: "ch_1" }], hasMore: false });
  });

  test("behavior: a cursor whose object is gone is told apart from a bad answer", async () => {
    const params = { startingAfter: "ch_gone" };
    expect(await client.list(PLATFORM_SCOPE, "charges", params)).toEqual({ kind: "cursor_gone" });
  });

  test("error: an id of no readable kind is refused before anything is sent", async () => {
    expect(isReadableId("0xabc")).toBe(false);
    expect(isReadableId("pi_1/../charges")).toBe(false);
    expect((await failure(client.retrieve(PLATFORM_SCOPE, "cus_1"))).code).toBe("shape");
    expect(sent).toEqual([]);
  });
});

describe("invariant 1: reads only", () => {
  test("error: every other method is stopped before it leaves", async () => {
    const http = readOnlyHttp({ onSent: () => sent.push("sent"), onDate: () => undefined });
    for (const method of ["POST", "DELETE", "PUT", "PATCH", "post"]) {
      const request = http.makeRequest(
        "127.0.0.1",
        String(sandbox.port),
        "/v1/refunds",
        method,
        {},
        "charge=ch_1",
        "http",
        1_000,
      );
      await expect(request).rejects.toThrow(BugError);
    }
    expect(sent).toEqual([]);
    expect(sandbox.control.requests).toEqual([]);
  });

  test("default: the client offers no method that writes", () => {
    expect(Object.keys(client).sort()).toEqual([
      "account",
      "clockAheadMs",
      "list",
      "retrieve",
      "stripeNow",
    ]);
  });
});

describe("faults", () => {
  test("error: a revoked key is told at once, without the key (B26)", async () => {
    sandbox.control.revokeKey(KEY);
    const error = await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES));
    expect(error.code).toBe("auth");
    expect(error.message).not.toContain("rk_test");
    expect(sent).toHaveLength(1);
  });

  test("error: a key without the right is told at once", async () => {
    sandbox.control.fault({
      kind: "respond",
      status: 403,
      body: { error: { type: "invalid_request_error", message: "no access" } },
    });
    const error = await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES));
    expect(error.code).toBe("permission");
    expect(sent).toHaveLength(1);
  });

  test("error: 429 is tried five times, slower each time, and then given up (B26)", async () => {
    sandbox.control.fault({ kind: "rate_limit", count: 6 });
    const error = await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES));
    expect(error.code).toBe("rate_limit");
    expect(sent).toHaveLength(5);
    expect(timer.sleeps.filter((ms) => ms >= 500)).toEqual([500, 1_000, 2_000, 4_000]);
    // The sixth 429 meets the next call, which gets through after it.
    expect(await client.list(PLATFORM_SCOPE, "charges", CHARGES)).toMatchObject({ kind: "page" });
  });

  test("behavior: Retry-After is honoured by every lane", async () => {
    sandbox.control.fault({ kind: "rate_limit", retryAfter: "7", path: "/v1/charges" });
    await client.list(PLATFORM_SCOPE, "charges", CHARGES);
    expect(timer.sleeps[0]).toBe(7_000);
    sandbox.control.fault({ kind: "rate_limit", retryAfter: "3600", path: "/v1/charges" });
    expect((await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES))).code).toBe(
      "rate_limit",
    );
    const other = await failure(client.list(PLATFORM_SCOPE, "refunds", {}));
    expect(other).toMatchObject({ code: "rate_limit" });
    expect(other.retryAfterMs).toBeGreaterThan(3_000_000);
  });

  test("behavior: locked objects are tried again, never two at once (B26)", async () => {
    for (const id of ["pi_7", "pi_8"]) {
      sandbox.control.seed.paymentIntent({ id });
      sandbox.control.fault({ kind: "lock_timeout", id, count: 2 });
    }
    const reads = ["pi_7", "pi_8"].map((id) => client.retrieve(PLATFORM_SCOPE, id));
    expect(await Promise.all(reads)).toMatchObject([{ kind: "found" }, { kind: "found" }]);
    const order = sandbox.control.requests.slice(2).map((request) => request.path.slice(-4));
    expect(order).toEqual(["pi_7", "pi_7", "pi_8", "pi_8"]);
    // A lock is no rate limit: nothing else was slowed down.
    await client.list(PLATFORM_SCOPE, "charges", CHARGES);
    expect(Math.max(...timer.sleeps)).toBeLessThan(1_000);
  });

  test("error: an object that stays locked is given up", async () => {
    sandbox.control.seed.paymentIntent({ id: "pi_7" });
    sandbox.control.fault({ kind: "lock_timeout", count: Infinity });
    expect((await failure(client.retrieve(PLATFORM_SCOPE, "pi_7"))).code).toBe("locked");
    expect(sent).toHaveLength(5);
  });

  test("behavior: server errors and cut bodies are tried again", async () => {
    sandbox.control.fault({ kind: "error_before", status: 503 });
    sandbox.control.fault({ kind: "cut_body", nth: 2 });
    expect(await client.list(PLATFORM_SCOPE, "charges", CHARGES)).toMatchObject({ kind: "page" });
    expect(sent).toHaveLength(3);
  });

  test.each([
    ["server", { kind: "error_before", count: Infinity }],
    ["network", { kind: "cut_body", count: Infinity }],
    ["shape", { kind: "respond", body: "<html>Bad gateway</html>", count: Infinity }],
  ] as const)("error: %s, when it does not pass", async (code, fault) => {
    sandbox.control.fault(fault);
    const error = await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES));
    expect(error.code).toBe(code);
    expect(sent).toHaveLength(4);
  });

  test("error: nobody answers", async () => {
    await sandbox.close();
    expect((await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES))).code).toBe("network");
    sandbox = await startStripeSandbox();
  });

  test.each([["null"], ["[]"], ["{}"], [`{"data":[{}],"has_more":false}`], [`{"data":[]}`]])(
    "error: JSON that is no list: %s",
    async (body) => {
      sandbox.control.fault({ kind: "respond", body });
      const error = await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES));
      expect(error.code).toBe("shape");
      expect(sent).toHaveLength(1);
    },
  );

  test("error: an answer of the other mode is no answer", async () => {
    const body = { data: [{ id: "ch_1", object: "charge", livemode: true }], has_more: false };
    sandbox.control.fault({ kind: "respond", body });
    expect((await failure(client.list(PLATFORM_SCOPE, "charges", CHARGES))).code).toBe("auth");
  });

  test("error: a key of the other mode is refused before anything is read", () => {
    const settings = { apiBase: sandbox.url, livemode: true, readsPerSecond: 0 };
    expect(() => openStripe({ ...settings, apiKey: KEY }, { clock })).toThrow(ConfigError);
    expect(() => openStripe({ ...settings, apiKey: KEY }, { clock })).not.toThrow(KEY);
  });
});

describe("pace", () => {
  test("default: a lane reads at its speed, other lanes are not held up", async () => {
    const paced = openClient(sandbox.url, { clock, timer }, { readsPerSecond: 20 });
    for (let read = 0; read < 45; read += 1) await paced.list(PLATFORM_SCOPE, "charges", {});
    // 45 reads, of which 5 may go ahead of their time: 39 or 40 intervals of 50 ms.
    expect(timer.nowMs()).toBeGreaterThanOrEqual(39 * 50 - 1);
    expect(timer.nowMs()).toBeLessThanOrEqual(40 * 50 + 1);
    const before = timer.nowMs();
    await paced.list(PLATFORM_SCOPE, "refunds", {});
    await paced.list(ACCOUNT_SCOPE, "charges", {});
    expect(timer.nowMs()).toBe(before);
  });

  test("behavior: no limit means no wait", async () => {
    for (let read = 0; read < 30; read += 1) await client.list(PLATFORM_SCOPE, "charges", {});
    expect(timer.sleeps).toEqual([]);
  });

  test("behavior: after a 429 all lanes read more slowly, and recover", async () => {
    sandbox.control.fault({ kind: "rate_limit" });
    await client.list(PLATFORM_SCOPE, "charges", {});
    const start = timer.nowMs();
    for (let read = 0; read < 10; read += 1) await client.list(PLATFORM_SCOPE, "refunds", {});
    expect(timer.nowMs() - start).toBeGreaterThanOrEqual(9 * 80);
    for (let read = 0; read < 40; read += 1) await client.list(PLATFORM_SCOPE, "refunds", {});
    const recovered = timer.nowMs();
    for (let read = 0; read < 10; read += 1) await client.list(PLATFORM_SCOPE, "disputes", {});
    expect(timer.nowMs()).toBe(recovered);
  });
});

test("behavior: the gap between the clocks is learnt from the answers", async () => {
  const server = createServer((_request, response) => {
    response.setHeader("date", new Date(clock.ms - 90_000).toUTCString());
    response.end(`{"data":[],"has_more":false}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const other = openClient(`http://127.0.0.1:${String(port)}`, { clock, timer });
  expect(other.clockAheadMs()).toBeNull();
  expect(other.stripeNow()).toEqual(clock.now());
  const page = await other.list(PLATFORM_SCOPE, "charges", {});
  expect(other.clockAheadMs()).toBe(90_000);
  expect(page).toMatchObject({ readAt: new Date(clock.ms - 90_000) });
  server.close();
  server.closeAllConnections();
});
