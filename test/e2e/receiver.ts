/** A running public port with the settings of a world, and hand-made deliveries for it. */
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { startWebhookServer, WEBHOOK_PATH } from "../../src/http/webhook-server.ts";
import { signatureHeader } from "../../src/sandbox/stripe/sign.ts";
import type { E2e } from "./world.ts";
import { WEBHOOK_SECRET } from "./world.ts";

export interface Delivery {
  /** Age of the signature's time. */
  readonly signedSecondsAgo?: number;
  readonly secret?: string;
}

export interface Receiver {
  readonly url: string;
  /** Delivers a body as Stripe does; answers the HTTP status. */
  readonly post: (event: unknown, delivery?: Delivery) => Promise<number>;
  readonly close: () => Promise<void>;
}

const MS = 1_000;

/** Starts the receiver of `world`; it stores, and a later pass applies. */
export async function startReceiver(world: E2e): Promise<Receiver> {
  const env = { ...world.env, STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET };
  const noFile = (): never => {
    throw new Error("no settings file here");
  };
  const settings = loadSettings({ env, readFile: noFile }).stripe;
  const deps = { pool: world.pool, settings, clock: systemClock, log: silentLog };
  const server = await startWebhookServer(
    { ...deps, onStored: () => undefined },
    { host: "127.0.0.1", port: 0 },
  );
  const url = `http://127.0.0.1:${String(server.port)}${WEBHOOK_PATH}`;
  return {
    url,
    post: async (event, { signedSecondsAgo = 0, secret = WEBHOOK_SECRET } = {}) => {
      const body = JSON.stringify(event);
      const seconds = Math.floor(Date.now() / MS) - signedSecondsAgo;
      const signature = signatureHeader(body, [secret], seconds);
      const headers = { "content-type": "application/json", "stripe-signature": signature };
      const response = await fetch(url, { method: "POST", headers, body });
      await response.arrayBuffer();
      return response.status;
    },
    close: () => server.close(),
  };
}

/** An event as Stripe sends it. */
export function event(input: {
  readonly id: string;
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>>;
  readonly created: number;
  readonly version?: string | null;
  readonly account?: string;
}): Record<string, unknown> {
  return {
    ...{ id: input.id, object: "event", type: input.type, created: input.created },
    api_version: input.version === undefined ? "2026-10-28.endive" : input.version,
    ...{ livemode: false, pending_webhooks: 1, request: { id: null, idempotency_key: null } },
    ...(input.account === undefined ? {} : { account: input.account }),
    data: { object: input.object },
  };
}

/** A payment intent's body. */
export function paymentIntent(
  id: string,
  created: number,
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    ...{ id, object: "payment_intent", amount: 2_000, amount_capturable: 0, currency: "usd" },
    ...{ amount_received: 2_000, created, livemode: false, status: "succeeded", metadata: {} },
    ...{ customer: null, capture_method: "automatic", payment_method_types: ["card"] },
    ...more,
  };
}

/** The body of a charge that is paid and captured whole. */
export function paidCharge(
  id: string,
  created: number,
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const amount = more["amount"] ?? 2_000;
  return {
    ...{ id, object: "charge", amount, amount_captured: amount, amount_refunded: 0, created },
    ...{ captured: true, paid: true, refunded: false, disputed: false, currency: "usd" },
    ...{ livemode: false, status: "succeeded", metadata: {}, customer: null, invoice: null },
    ...{ payment_method_details: { type: "card" }, source_transfer: null, transfer_data: null },
    ...more,
  };
}
