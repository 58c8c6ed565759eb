/**
 * Webhook to durable: signature checked, reduced, stored and acknowledged, against the same route
 * with one plain insert for each event and no checks.
 */
import http from "node:http";

import express from "express";
import type { Pool } from "pg";
import Stripe from "stripe";

import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { WEBHOOK_PATH, startWebhookServer } from "../../src/http/webhook-server.ts";
import { testSettings } from "../support/settings.ts";
import type { BenchWorld, Measured } from "./bench.ts";
import { freshDatabase, quantile, seconds } from "./database.ts";

const EVENTS = 6_000;
// What Stripe keeps open to one endpoint during a burst.
const IN_FLIGHT = 64;
const SECRET = "whsec_bench";

interface Request {
  readonly body: string;
  readonly signature: string;
}

function requests(count: number, from: number): Request[] {
  const stripe = new Stripe("sk_test_bench");
  const created = Math.floor(Date.now() / 1_000);
  return Array.from({ length: count }, (_, n) => {
    const id = String(from + n);
    const body = JSON.stringify({
      id: `evt_${id}`,
      object: "event",
      type: "charge.succeeded",
      api_version: "2020-08-27",
      created,
      livemode: false,
      request: { id: `req_${id}`, idempotency_key: `key-${id}` },
      data: {
        object: {
          id: `ch_${id}`,
          object: "charge",
          amount: 1_000,
          amount_captured: 1_000,
          amount_refunded: 0,
          captured: true,
          paid: true,
          refunded: false,
          disputed: false,
          status: "succeeded",
          currency: "usd",
          created,
          customer: "cus_1",
          payment_intent: `pi_${id}`,
          metadata: { intent_id: `order-${id}` },
          payment_method_details: { type: "card", card: { fingerprint: "fp" } },
        },
      },
    });
    const header = stripe.webhooks.generateTestHeaderString({ payload: body, secret: SECRET });
    return { body, signature: header };
  });
}

/** Sends all, `IN_FLIGHT` at once or paced, and answers each time in milliseconds. */
async function send(
  port: number,
  list: readonly Request[],
  perSecond: number | null,
): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  const times: number[] = [];
  const started = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < list.length; index = next++) {
      const one = list[index];
      if (one === undefined) return;
      if (perSecond !== null) {
        const wait = started + (index * 1_000) / perSecond - performance.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      }
      const sent = performance.now();
      await post(agent, port, one);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  agent.destroy();
  return times;
}

function post(agent: http.Agent, port: number, one: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        agent,
        port,
        host: "127.0.0.1",
        path: WEBHOOK_PATH,
        method: "POST",
        headers: { "content-type": "application/json", "stripe-signature": one.signature },
      },
      (response) => {
        response.resume();
        response.on("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`status ${String(response.statusCode)}`));
        });
      },
    );
    request.on("error", reject);
    request.end(one.body);
  });
}

async function floorServer(pool: Pool): Promise<{ port: number; close: () => Promise<void> }> {
  await pool.query("create table plain (id text primary key, body text not null)");
  const app = express();
  app.post(WEBHOOK_PATH, express.raw({ type: () => true }), async (request, response) => {
    const body = (request.body as Buffer).toString("utf8");
    await pool.query("insert into plain (id, body) values ($1, $2)", [body.slice(0, 40), body]);
    response.json({ received: true });
  });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      }),
  };
}

/** The bench. */
export async function benchWebhook(world: BenchWorld): Promise<readonly Measured[]> {
  const pool = await freshDatabase(world.serverUrl, "bench_webhook");
  const settings = testSettings({}, { STRIPE_WEBHOOK_SECRET: SECRET });
  const ours = await startWebhookServer(
    { pool, settings: settings.stripe, clock: systemClock, log: silentLog, onStored: () => {} },
    { host: "127.0.0.1", port: 0 },
  );
  const floor = await floorServer(pool);
  const warm = requests(500, 0);
  await send(ours.port, warm, null);
  await send(floor.port, warm, null);
  const load = requests(EVENTS, 1_000);
  const plain = EVENTS / (await seconds(() => send(floor.port, load, null)));
  const figure = EVENTS / (await seconds(() => send(ours.port, load, null)));
  const half = requests(EVENTS / 2, 100_000);
  const times = await send(ours.port, half, figure / 2);
  await ours.close();
  await floor.close();
  await pool.end();
  return [
    {
      name: "webhook: checked, stored, acknowledged",
      figure: `${figure.toFixed(0)} events/s`,
      floor: `${plain.toFixed(0)} events/s`,
      ratio: figure / plain,
      aim: "at least 1",
    },
    {
      name: "webhook: p99 at half load",
      figure: `${quantile(times, 0.99).toFixed(1)} ms`,
      floor: "-",
      ratio: null,
      aim: "under 50 ms",
    },
  ];
}
