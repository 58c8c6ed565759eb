/** Goal: the example of the README sells as it stands there. */
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

import { x402ResourceServer } from "@x402/core/server";
import * as x402 from "@x402/express";
import express from "express";
import type { Express } from "express";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

import * as library from "../../src/gateway/gateway.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";
import { runExample } from "../support/readme-example.ts";
import { paymentHeaders } from "./world.ts";

interface Example {
  readonly shop: (
    pool: Pool,
    ...paid: unknown[]
  ) => Promise<{ readonly app: Express; readonly gateway: Gateway }>;
}

let db: TestDb;
let gateway: Gateway;
let server: Server;
let url: string;
let made = 0;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
  const { shop } = runExample("Sell so that nobody pays twice", 0, {
    ...{ "@x402/express": x402, "tallyd/gateway": library },
    express: { default: express, __esModule: true },
  }) as Example;
  // Nothing is for sale here, so that no chain is needed; what is sold stands in x402.test.ts.
  const built = await shop(db.pool, {}, new x402ResourceServer([]), undefined, undefined, false);
  gateway = built.gateway;
  built.app.use((_request, response) => {
    made += 1;
    response.status(201).json({ made });
  });
  server = createServer((request, response) => {
    built.app(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});
afterAll(async () => {
  gateway.close();
  await new Promise((resolve) => server.close(resolve));
  await db.close();
});

function order(key?: string, amount = 1) {
  const type = { "content-type": "application/json", authorization: "Bearer alice" };
  return fetch(`${url}/orders`, {
    method: "POST",
    headers: { ...type, ...(key === undefined ? {} : { "idempotency-key": key }) },
    body: JSON.stringify({ amount }),
  });
}

test("default: an order with a key runs once", async () => {
  expect((await order()).status).toBe(400);
  const [first, second] = [await order('"o-1"'), await order('"o-1"')];
  expect([first.status, await first.json()]).toEqual([201, { made: 1 }]);
  expect([second.status, await second.json()]).toEqual([201, { made: 1 }]);
  expect(second.headers.get("idempotent-replayed")).toBe("true");
  expect((await order('"o-1"', 2)).status).toBe(422);
  expect(made).toBe(1);
});

test("behavior: a payment is answered once and replayed", async () => {
  const headers = paymentHeaders({ id: "pay_0123456789abcdef" });
  const told = [await fetch(`${url}/goods`, { headers }), await fetch(`${url}/goods`, { headers })];
  expect(await Promise.all(told.map((one) => one.json()))).toEqual([{ made: 2 }, { made: 2 }]);
  expect(gateway.counters.replays).toBeGreaterThan(0);
});
