/** Goal: who may see what on the admin port, and what health says. Method: real HTTP. */
import { afterEach, describe, expect, it } from "vitest";

import { silentLog } from "../../src/core/log.ts";
import { createAdminApp } from "../../src/http/admin-server.ts";
import type { AdminDeps } from "../../src/http/admin-server.ts";
import { listen } from "../../src/http/listen.ts";
import type { Listening } from "../../src/http/listen.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import type { Check } from "../../src/http/readiness.ts";

const TOKEN = "admin-token-for-tests";
const settings = { host: "ADMIN_HOST", port: "ADMIN_PORT" };
let server: Listening | undefined;
afterEach(async () => {
  await server?.close(0);
  server = undefined;
});

const FINE: Check[] = [
  { name: "database", ok: true, reason: "reachable" },
  { name: "sources", ok: true, reason: "every source was read in time" },
];

async function get(
  path: string,
  overrides: Partial<AdminDeps> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly type: string; readonly text: string }> {
  const app = createAdminApp({
    readiness: () => Promise.resolve({ ready: true, checks: FINE }),
    metrics: createMetrics([]),
    token: null,
    routers: [],
    log: silentLog,
    ...overrides,
  });
  server = await listen(app, { host: "127.0.0.1", port: 0, settings });
  const answer = await fetch(`http://127.0.0.1:${String(server.port)}${path}`, { headers });
  const type = answer.headers.get("content-type") ?? "";
  return { status: answer.status, type, text: await answer.text() };
}

describe("createAdminApp", () => {
  it("default: alive, ready, metrics", async () => {
    expect((await get("/healthz")).status).toBe(200);
    await server?.close(0);
    expect(JSON.parse((await get("/readyz")).text)).toMatchObject({ ready: true });
    await server?.close(0);
    const metrics = await get("/metrics");
    expect(metrics.type).toContain("text/plain");
    expect(metrics.text).toContain("tallyd_metric_errors 0");
  });

  it.each([
    ["/healthz", {}, 200],
    ["/readyz", {}, 401],
    ["/metrics", {}, 401],
    ["/nope", {}, 401],
    ["/readyz", { authorization: "Bearer wrong" }, 401],
    ["/readyz", { authorization: "Bearer " }, 401],
    ["/readyz", { authorization: `Basic ${TOKEN}` }, 401],
    ["/readyz", { authorization: `Bearer ${TOKEN}` }, 200],
    ["/readyz", { authorization: `bearer ${TOKEN}` }, 200],
  ])("behavior: with a token %s %j is %i", async (path, headers, status) => {
    expect((await get(path, { token: TOKEN }, { ...headers })).status).toBe(status);
  });

  const blind = () =>
    Promise.resolve({
      ready: false,
      checks: [FINE[0]!, { name: "sources" as const, ok: false, reason: "stripe.events: never" }],
    });

  it("behavior: not ready is 503 with every reason", async () => {
    const answer = await get("/readyz", { readiness: blind });
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("stripe.events: never");
  });

  it.each([
    ["database", 200],
    ["sources", 503],
    ["database,sources", 503],
    ["nonsense", 503],
  ])("behavior: ?only=%s is %i", async (only, status) => {
    expect((await get(`/readyz?only=${only}`, { readiness: blind })).status).toBe(status);
  });

  it("error: an unknown path is 404 JSON, a failing page 500 without its reason", async () => {
    const nothing = await get("/nope");
    expect(nothing).toMatchObject({ status: 404 });
    expect(JSON.parse(nothing.text)).toEqual({ error: { message: "GET /nope is not here" } });
    await server?.close(0);
    const broken = await get("/metrics", { metrics: () => Promise.reject(new Error("s3cret")) });
    expect(broken.status).toBe(500);
    expect(broken.text).not.toContain("s3cret");
  });
});

describe("createMetrics", () => {
  it("behavior: a source that fails is left out and counted", async () => {
    const scrape = await createMetrics([
      {
        name: "good",
        help: "h",
        labels: ["a"],
        kind: "gauge",
        samples: () => Promise.resolve([{ labels: { a: "x" }, value: 2 }]),
      },
      {
        name: "bad",
        help: "h",
        labels: [],
        kind: "gauge",
        samples: () => Promise.reject(new Error("down")),
      },
    ])();
    expect(scrape.body).toContain('tallyd_good{a="x"} 2');
    expect(scrape.body).toContain("tallyd_metric_errors 1");
    expect(scrape.body).not.toContain("tallyd_bad");
  });
});
