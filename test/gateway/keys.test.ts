/**
 * Goal: plain POST routes keep to the draft of the Idempotency-Key header: 400, 409, 422, replay.
 * Method: real HTTP and PostgreSQL, the same store as for payments.
 */
import type { RequestHandler } from "express";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { createGateway, gatewayTableSql } from "../../src/gateway/gateway.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { gate, openShop } from "./world.ts";
import type { Shop, ShopOptions, Told } from "./world.ts";

let db: TestDb;
let shop: Shop;
let turn = 0;
let runs: number;
let handler: RequestHandler;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());
beforeEach(async () => {
  turn += 1;
  runs = 0;
  handler = (_request, response) => response.status(201).json({ order: runs });
  shop = await open();
});
afterEach(() => shop.close());

async function open(over: Partial<ShopOptions> = {}): Promise<Shop> {
  const schema = `keyed_${String(turn)}`;
  await db.pool.query(gatewayTableSql(schema));
  return openShop({
    dbUrl: db.url,
    schema,
    handler: (request, response, next) => {
      runs += 1;
      void handler(request, response, next);
    },
    ...over,
  });
}

function post(key: string | null, body: unknown = { n: 1 }, who = "alice"): Promise<Told> {
  return shop.ask("/orders", {
    method: "POST",
    headers: {
      ...{ "content-type": "application/json", authorization: who },
      ...(key === null ? {} : { "idempotency-key": key }),
    },
    body: JSON.stringify(body),
  });
}

test("default: the same request again gets the stored answer", async () => {
  expect(await post('"k-1"')).toMatchObject({ status: 201, body: { order: 1 }, replayed: false });
  expect(await post('"k-1"', { n: 1 })).toMatchObject({ body: { order: 1 }, replayed: true });
  expect(await post('"k-2"')).toMatchObject({ body: { order: 2 } });
});

test("error: 400 without a key or with a broken one; GET needs none", async () => {
  expect(await post(null)).toMatchObject({ status: 400, code: "key_missing" });
  expect(await post('"open')).toMatchObject({ status: 400, code: "key_invalid" });
  expect(runs).toBe(0);
  expect((await shop.ask("/orders")).status).toBe(201);
});

test("error: 422 with another body", async () => {
  await post('"k-1"');
  expect(await post('"k-1"', { n: 2 })).toMatchObject({ status: 422, code: "key_conflict" });
  expect(shop.gateway.counters.conflicts).toBe(1);
});

test("error: 409 while the first one runs", async () => {
  const door = gate();
  handler = (_request, response) => {
    void door.passed.then(() => response.json({}));
  };
  const first = post('"k-1"');
  await expect.poll(() => runs).toBe(1);
  expect(await post('"k-1"')).toMatchObject({ status: 409, code: "in_progress" });
  door.open();
  expect((await first).status).toBe(200);
});

test("behavior: two callers with one key are two; a rate limit leaves no trace", async () => {
  await post('"k-1"', {}, "alice");
  expect(await post('"k-1"', {}, "bob")).toMatchObject({ body: { order: 2 } });
  handler = (_request, response) => response.status(429).end();
  expect((await post('"k-2"')).status).toBe(429);
  handler = (_request, response) => response.status(201).json({});
  expect((await post('"k-2"')).status).toBe(201);
});

test("behavior: what ended nobody knows how does not run again until a person says so", async () => {
  handler = () => undefined;
  const lost = post('"k-1"').catch(() => "lost");
  await expect.poll(() => runs).toBe(1);
  await shop.close();
  await lost;
  shop = await open();
  handler = (_request, response) => response.status(201).json({});
  expect(await post('"k-1"')).toMatchObject({ status: 409, code: "outcome_unknown" });
  expect(runs).toBe(1);
  const stored = await db.pool.query(
    `select g.principal from keyed_${String(turn)}.gateway_response g`,
  );
  expect(JSON.stringify(stored.rows)).not.toContain("alice");
  const name = { scope: "keyed", principal: "alice", id: "k-1" };
  expect(await shop.gateway.forget(name)).toBe(true);
  expect((await post('"k-1"')).status).toBe(201);
  expect(await shop.gateway.forget(name)).toBe(false);
});

test("behavior: a handler that is idempotent may be run again", async () => {
  handler = () => undefined;
  const lost = post('"k-1"').catch(() => "lost");
  await expect.poll(() => runs).toBe(1);
  await shop.close();
  await lost;
  shop = await open({ keys: { runUnknownAgain: true } });
  handler = (_request, response) => response.status(201).json({});
  expect(await post('"k-1"')).toMatchObject({ status: 201 });
  expect(runs).toBe(2);
});

test("error: options out of bounds are named all at once", () => {
  const make = (): unknown =>
    createGateway({ pool: shop.pool, schema: "A-b", keepMs: 1, answerBytesMax: 0.5 });
  expect(make).toThrow(/schema "A-b".*\nkeepMs is 1:.*\nanswerBytesMax is 0.5:/s);
  expect(() => shop.gateway.payments({ waitMs: -1 })).toThrow("waitMs is -1");
});
