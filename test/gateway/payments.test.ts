/**
 * Goal: one payment runs the handler once and has one answer, whatever goes wrong around it.
 * Method: real HTTP and PostgreSQL; the handler stands where the official middleware and the goods
 * would be, and ends in every way that they do (the official ones: x402.test.ts).
 */
import type { RequestHandler } from "express";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { gatewayTableSql } from "../../src/gateway/gateway.ts";
import type { GatewayRequest } from "../../src/gateway/gateway.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { openDyingShop } from "./dying-shop.ts";
import { gate, openShop, paymentHeaders, settlement } from "./world.ts";
import type { PaymentWords, Shop, ShopOptions, Told } from "./world.ts";

const ID = "pay_0123456789abcdef";
const PAID = { "PAYMENT-RESPONSE": settlement(true) };

let db: TestDb;
let schema: string;
let turn = 0;
let shops: Shop[];
let runs: number;
let handler: RequestHandler;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());
beforeEach(async () => {
  turn += 1;
  schema = `shop_${String(turn)}`;
  await db.pool.query(gatewayTableSql(schema));
  shops = [];
  runs = 0;
  handler = (_request, response) => {
    response.set(PAID).set("X-Goods", "yes").status(201).json({ goods: runs });
  };
});
afterEach(async () => {
  for (const shop of shops) await shop.close();
});

async function open(over: Partial<ShopOptions> = {}): Promise<Shop> {
  const shop = await openShop({
    dbUrl: db.url,
    schema,
    handler: (request, response, next) => {
      runs += 1;
      void handler(request, response, next);
    },
    ...over,
  });
  shops.push(shop);
  return shop;
}

type Init = Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> };

function pay(shop: Shop, words: PaymentWords = {}, init: Init = {}): Promise<Told> {
  const headers = { ...paymentHeaders({ id: ID, ...words }), ...init.headers };
  return shop.ask("/goods", { ...init, headers });
}

async function rows(): Promise<{ state: string; id: string }[]> {
  const found = await db.pool.query<{ state: string; id: string }>(
    `select g.state, g.id from ${schema}.gateway_response g order by g.id`,
  );
  return found.rows;
}

async function move(column: string): Promise<void> {
  const set = ["answer_until", "forget_at"].slice(0, column === "forget_at" ? 2 : 1);
  const past = set.map((name) => `${name} = now() - interval '1 second'`).join(", ");
  await db.pool.query(`update ${schema}.gateway_response set ${past}`);
}

test("default: the same payment again gets the stored answer: status, headers, body", async () => {
  const shop = await open();
  const first = await pay(shop);
  const second = await pay(shop);
  expect(first).toMatchObject({ status: 201, body: { goods: 1 }, replayed: false });
  expect(second).toMatchObject({ status: 201, body: { goods: 1 }, replayed: true });
  for (const name of ["payment-response", "x-goods", "content-type", "etag", "content-length"]) {
    expect(first.headers.get(name)).not.toBeNull();
    expect(second.headers.get(name)).toBe(first.headers.get(name));
  }
  expect(runs).toBe(1);
  expect(shop.gateway.counters).toEqual({
    ...{ replays: 1, conflicts: 0, authorizationReuses: 0, unknownEnds: 0 },
  });
});

test("behavior: requests that do not pay go through and leave nothing", async () => {
  const shop = await open();
  await shop.ask("/goods");
  await shop.ask("/goods");
  expect(runs).toBe(2);
  expect(await rows()).toEqual([]);
});

test("behavior: twenty at once from two processes run the handler once", async () => {
  const [one, two] = [await open(), await open()];
  handler = (_request, response) => {
    setTimeout(() => response.set(PAID).json({ goods: runs }), 150);
  };
  const told = await Promise.all(
    Array.from({ length: 20 }, (_, index) => pay(index % 2 === 0 ? one : two)),
  );
  expect(new Set(told.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1);
  expect(told[0]).toMatchObject({ status: 200, body: { goods: 1 } });
  expect(told.filter(({ replayed }) => replayed)).toHaveLength(19);
  expect(runs).toBe(1);
});

test("behavior: who would wait too long is told that the first one runs", async () => {
  const door = gate();
  handler = (_request, response) => {
    void door.passed.then(() => response.set(PAID).json({}));
  };
  const shop = await open({ payments: { waitMs: 60 } });
  const first = pay(shop);
  await expect.poll(() => runs).toBe(1);
  const second = await pay(shop);
  expect(second).toMatchObject({ status: 409, code: "in_progress" });
  expect(second.headers.get("retry-after")).toBe("1");
  door.open();
  expect((await first).status).toBe(200);
});

test("error: the same identifier with another payment, body or path", async () => {
  const shop = await open();
  await pay(shop);
  const json = { "content-type": "application/json" };
  const others = [
    await pay(shop, { nonce: "0x02" }),
    await pay(shop, {}, { method: "POST", headers: json, body: '{"a":1}' }),
    await shop.ask("/goods?n=2", { headers: paymentHeaders({ id: ID }) }),
  ];
  for (const other of others)
    expect(other).toMatchObject({ status: 409, code: "payment_id_conflict" });
  expect(others[0]?.headers.get("content-type")).toContain("application/problem+json");
  expect(runs).toBe(1);
  expect(shop.gateway.counters.conflicts).toBe(3);
});

test("behavior: two payers with the same identifier are two purchases", async () => {
  const shop = await open();
  await pay(shop, { from: "0xaa", nonce: "0x01" });
  const other = await pay(shop, { from: "0xcc", nonce: "0x02" });
  expect(other).toMatchObject({ status: 201, body: { goods: 2 } });
  expect(runs).toBe(2);
});

test("behavior: two tenants with the same identifier are two purchases", async () => {
  const scope = (request: GatewayRequest): string => request.headers.host ?? "";
  const [one, two] = [await open({ payments: { scope } }), await open({ payments: { scope } })];
  await pay(one);
  expect(await pay(two, { nonce: "0x02" })).toMatchObject({ status: 201, replayed: false });
});

test("error: one signed authorization under another identifier, for 24 hours", async () => {
  const shop = await open();
  await pay(shop);
  const again = await pay(shop, { id: "pay_another_one_0001" });
  const bare = await shop.ask("/goods", { headers: paymentHeaders() });
  expect([again, bare]).toMatchObject([
    { status: 409, code: "authorization_reused" },
    { status: 409, code: "authorization_reused" },
  ]);
  expect(shop.gateway.counters.authorizationReuses).toBe(2);
  await move("forget_at");
  expect((await pay(shop, { id: "pay_another_one_0001" })).status).toBe(201);
  expect((await rows()).map(({ id }) => id)).toEqual(["pay_another_one_0001"]);
});

test("behavior: without an identifier a payment is known by what was signed", async () => {
  const shop = await open();
  const headers = paymentHeaders();
  await shop.ask("/goods", { headers });
  expect(await shop.ask("/goods", { headers })).toMatchObject({ status: 201, replayed: true });
});

test("error: an identifier is required, has a form, and a payment can be read", async () => {
  const shop = await open({ payments: { requireId: true } });
  expect(await shop.ask("/goods", { headers: paymentHeaders() })).toMatchObject({
    ...{ status: 400, code: "payment_id_missing" },
  });
  expect(await pay(shop, { id: "short" })).toMatchObject({
    status: 400,
    code: "payment_id_invalid",
  });
  const broken = await shop.ask("/goods", { headers: { "payment-signature": "?" } });
  expect(broken).toMatchObject({ status: 400, code: "payment_malformed" });
  expect(runs).toBe(0);
});

test("error: sizes, and bodies that nobody parsed", async () => {
  const shop = await open({ gateway: { requestBytesMax: 40, headerBytesMax: 1_024 } });
  const post = (type: string, body: string): Promise<Told> =>
    pay(shop, {}, { method: "POST", headers: { "content-type": type }, body });
  expect((await post("application/json", `["${"x".repeat(60)}"]`)).status).toBe(413);
  expect((await post("text/plain", "hello")).status).toBe(415);
  const large = await pay(shop, { id: "a".repeat(128), nonce: "0".repeat(900) });
  expect(large).toMatchObject({ status: 431, code: "header_too_large" });
  expect(runs).toBe(0);
  expect((await post("application/octet-stream", "hello")).status).toBe(201);
});

test("behavior: errors are replayed, thrown ones too", async () => {
  const shop = await open();
  handler = (_request, response) => response.status(422).json({ why: "no such thing" });
  const first = await pay(shop);
  expect(await pay(shop)).toMatchObject({ status: 422, body: first.body, replayed: true });
  handler = () => {
    throw new Error("broken");
  };
  const thrown = await pay(shop, { id: "pay_another_one_0001", nonce: "0x02" });
  const again = await pay(shop, { id: "pay_another_one_0001", nonce: "0x02" });
  expect(again).toMatchObject({ status: 500, body: thrown.body, replayed: true });
  expect(runs).toBe(2);
});

test("behavior: a refused payment leaves no trace, and may be paid otherwise", async () => {
  const shop = await open();
  handler = (_request, response) => response.set("PAYMENT-REQUIRED", "e30=").status(402).json({});
  expect((await pay(shop)).status).toBe(402);
  expect(await rows()).toEqual([]);
  handler = (_request, response) => response.set(PAID).json({});
  expect((await pay(shop, { nonce: "0x02" })).status).toBe(200);
});

test("behavior: a settlement that failed is in doubt: tried again, and never called unpaid", async () => {
  const shop = await open();
  handler = (_request, response) =>
    response.set("PAYMENT-RESPONSE", settlement(false)).status(402).json({});
  expect((await pay(shop)).status).toBe(402);
  expect(await rows()).toMatchObject([{ state: "unknown" }]);
  // Another payment under this identifier would be the second for one purchase.
  expect(await pay(shop, { nonce: "0x02" })).toMatchObject({ code: "payment_id_conflict" });
  handler = (_request, response) => response.set("PAYMENT-REQUIRED", "e30=").status(402).json({});
  const doubt = await pay(shop);
  expect(doubt).toMatchObject({ status: 409, code: "outcome_unknown", replayed: false });
  expect(doubt.headers.get("payment-required")).toBeNull();
  handler = (_request, response) => response.set(PAID).json({});
  expect((await pay(shop)).status).toBe(200);
  expect(await pay(shop)).toMatchObject({ status: 200, replayed: true });
  expect(shop.gateway.counters.unknownEnds).toBe(1);
});

test("behavior: a restart in between replays", async () => {
  const before = await open();
  const first = await pay(before);
  await before.close();
  expect(await pay(await open())).toMatchObject({ body: first.body, replayed: true });
  expect(runs).toBe(1);
});

test("behavior: a killed process's claim is free at once, in doubt, and no success", async () => {
  const dying = await openDyingShop({ dbUrl: db.url, schema });
  const headers = paymentHeaders({ id: ID });
  const lost = fetch(`${dying.url}/goods`, { headers }).catch(() => "lost");
  await expect.poll(rows).toMatchObject([{ state: "running" }]);
  const alive = await open({ payments: { waitMs: 0 } });
  expect(await pay(alive)).toMatchObject({ status: 409, code: "in_progress" });
  await dying.kill();
  await lost;
  expect(await rows()).toMatchObject([{ state: "running" }]);
  handler = (_request, response) => response.set("PAYMENT-REQUIRED", "e30=").status(402).json({});
  expect(await pay(alive)).toMatchObject({ status: 409, code: "outcome_unknown" });
  handler = (_request, response) => response.set(PAID).json({ goods: "late" });
  expect(await pay(alive)).toMatchObject({ status: 200, body: { goods: "late" } });
  expect(runs).toBe(2);
});

test("behavior: the database cuts the sign of life off: what runs is still known to run", async () => {
  const shop = await open({ payments: { waitMs: 0 } });
  const door = gate();
  handler = (_request, response) => {
    void door.passed.then(() => response.set(PAID).json({ goods: runs }));
  };
  const first = pay(shop);
  await expect.poll(() => runs).toBe(1);
  await db.pool.query(
    `select pg_terminate_backend(l.pid)
       from pg_locks l
      where l.locktype = 'advisory'
        and l.granted
        and l.database = (select d.oid from pg_database d where d.datname = current_database())`,
  );
  expect(await pay(shop)).toMatchObject({ status: 409, code: "in_progress" });
  door.open();
  expect(await first).toMatchObject({ status: 200, body: { goods: 1 } });
  expect(await pay(shop)).toMatchObject({ body: { goods: 1 }, replayed: true });
  expect(runs).toBe(1);
});

test("behavior: the client has gone: the run's answer is stored, one that never comes is in doubt", async () => {
  const shop = await open({ gateway: { abandonedAfterMs: 1_000 }, payments: { waitMs: 0 } });
  const door = gate();
  handler = (_request, response) => {
    void door.passed.then(() => response.set(PAID).json({ goods: runs }));
  };
  const leaving = new AbortController();
  const left = pay(shop, {}, { signal: leaving.signal }).catch(() => "left");
  await expect.poll(() => runs).toBe(1);
  leaving.abort();
  await left;
  door.open();
  await expect.poll(rows).toMatchObject([{ state: "done" }]);
  expect(await pay(shop)).toMatchObject({ body: { goods: 1 }, replayed: true });
  handler = () => undefined;
  const leavingToo = new AbortController();
  const { signal } = leavingToo;
  const never = pay(shop, { id: "pay_never_answered", nonce: "0x02" }, { signal });
  await expect.poll(() => runs).toBe(2);
  leavingToo.abort();
  await never.catch(() => "left");
  await expect.poll(rows, { timeout: 5_000 }).toMatchObject([{}, { state: "unknown" }]);
});

test("behavior: an answer past its time is said to be, and nothing is done again", async () => {
  const shop = await open({ gateway: { keepMs: 60_000 } });
  await pay(shop);
  await move("answer_until");
  expect(await pay(shop)).toMatchObject({ status: 409, code: "response_expired" });
  expect(await shop.gateway.purge()).toBe(1);
  expect(await pay(shop)).toMatchObject({ status: 409, code: "response_expired" });
  await move("forget_at");
  expect(await shop.gateway.purge()).toBe(1);
  expect(await rows()).toEqual([]);
  expect(runs).toBe(1);
});

test("behavior: a large answer goes out once and is not kept", async () => {
  const shop = await open({ gateway: { answerBytesMax: 10 } });
  handler = (_request, response) => {
    response.set(PAID).set("Content-Type", "text/plain").write("0123456789");
    response.write("abc");
    response.end("def");
  };
  expect(await pay(shop)).toMatchObject({ status: 200, body: "0123456789abcdef" });
  expect(await pay(shop)).toMatchObject({ status: 409, code: "response_not_kept" });
  expect(runs).toBe(1);
});

test("behavior: answers in every spelling of Node come back byte by byte, without cookies", async () => {
  const shop = await open();
  handler = (_request, response) => {
    response.setHeader("Set-Cookie", "session=1");
    response.writeHead(203, "Fine", ["X-One", "1", "Payment-Response", settlement(true)]);
    response.flushHeaders();
    response.write("00ff", "hex", () => response.end(Buffer.from([1, 2]), () => undefined));
  };
  const first = await pay(shop);
  const second = await pay(shop);
  expect(first).toMatchObject({ status: 203, body: "\u0000\ufffd\u0001\u0002" });
  expect(second).toMatchObject({ status: 203, body: first.body, replayed: true });
  expect(second.headers.get("x-one")).toBe("1");
  expect([first, second].map(({ headers }) => headers.get("set-cookie"))).toEqual([
    "session=1",
    null,
  ]);
});

test("behavior: what a handler does after its answer does not change it", async () => {
  const shop = await open();
  handler = (_request, response, next) => {
    response.set(PAID).set("X-One", "1").status(201).json({ goods: runs });
    next(runs === 1 ? undefined : new Error("too late"));
  };
  for (const id of [ID, "pay_another_one_0001"]) {
    const words = { id, nonce: `0x${id}` };
    const [first, second] = [await pay(shop, words), await pay(shop, words)];
    expect(first).toMatchObject({ status: 201, body: { goods: runs }, replayed: false });
    expect(second).toMatchObject({ status: 201, body: first.body, replayed: true });
    expect(first.headers.get("content-type")).toContain("application/json");
    expect([first, second].map(({ headers }) => headers.get("x-one"))).toEqual(["1", "1"]);
  }
});

test("behavior: headers that are set when the head is written are part of the answer", async () => {
  const shop = await open();
  handler = (_request, response) => {
    const { writeHead } = response;
    // As on-headers does, and sessions and timers with it.
    response.writeHead = (...parts: unknown[]) => {
      response.setHeader("X-Late", "1");
      return Reflect.apply(writeHead, response, parts) as typeof response;
    };
    response.set(PAID).json({});
  };
  const told = [await pay(shop), await pay(shop)];
  expect(told.map(({ headers }) => headers.get("x-late"))).toEqual(["1", "1"]);
});

test("error: a status that does not exist ends the connection, in doubt, and not the process", async () => {
  const shop = await open();
  handler = (_request, response) => {
    response.statusCode = 42;
    response.end();
  };
  await expect(pay(shop)).rejects.toThrow("fetch failed");
  expect(await rows()).toMatchObject([{ state: "unknown" }]);
  expect(String(shop.faults)).toContain("42");
});

test("error: without its table or database nothing runs", async () => {
  const shop = await open({ schema: "not_there" });
  expect(await pay(shop)).toMatchObject({ status: 503, code: "store_unavailable" });
  expect(runs).toBe(0);
  expect(String(shop.faults[0])).toContain("not_there");
});

test("behavior: the database fails behind the run: the answer goes out and is stored later", async () => {
  const shop = await open({ payments: { waitMs: 0 } });
  await pay(shop, { id: "pay_warmed_up_before", nonce: "0x09" });
  const table = `${schema}.gateway_response`;
  handler = (_request, response) => {
    void db.pool.query(`alter table ${table} rename to hidden`).then(() => {
      response.set(PAID).json({ goods: runs });
    });
  };
  expect(await pay(shop)).toMatchObject({ status: 200, body: { goods: 2 } });
  await db.pool.query(`alter table ${schema}.hidden rename to gateway_response`);
  expect(await pay(shop)).toMatchObject({ status: 409, code: "in_progress" });
  await expect
    .poll(() => pay(shop), { timeout: 10_000, interval: 250 })
    .toMatchObject({ body: { goods: 2 }, replayed: true });
  expect(shop.faults).toHaveLength(1);
});
