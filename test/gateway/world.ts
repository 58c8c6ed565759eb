/** A shop with a guard in front, over real HTTP and PostgreSQL; the handler is the test's. */
import { createServer } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

import express from "express";
import type { Request, RequestHandler, Response } from "express";
import type { Pool } from "pg";

import { createGateway } from "../../src/gateway/gateway.ts";
import type {
  Gateway,
  GatewayOptions,
  KeyOptions,
  PaymentOptions,
} from "../../src/gateway/gateway.ts";
import { openPool } from "../../src/store/pool.ts";

/** What a client was told. */
export interface Told {
  readonly status: number;
  readonly code: unknown;
  readonly body: unknown;
  readonly replayed: boolean;
  readonly headers: Headers;
}

/** One process that sells. */
export interface Shop {
  readonly gateway: Gateway;
  readonly url: string;
  readonly pool: Pool;
  readonly faults: unknown[];
  readonly ask: (path: string, init?: RequestInit) => Promise<Told>;
  readonly close: () => Promise<void>;
}

/** What a shop is made with. */
export interface ShopOptions {
  readonly dbUrl: string;
  readonly schema: string;
  readonly gateway?: Partial<GatewayOptions>;
  readonly payments?: PaymentOptions;
  readonly keys?: Partial<KeyOptions>;
  /** Called for each request that comes through. */
  readonly handler: RequestHandler;
}

/** Opens a shop: payments are guarded everywhere, keys below /orders. */
export async function openShop(options: ShopOptions): Promise<Shop> {
  const pool = openPool({ url: options.dbUrl, applicationName: "shop", max: 6 });
  const faults: unknown[] = [];
  const gateway = createGateway({
    pool,
    schema: options.schema,
    onFault: (error) => faults.push(error),
    ...options.gateway,
  });
  const app = express();
  app.use(express.json(), express.raw({ type: "application/octet-stream" }));
  app.use(gateway.payments(options.payments));
  const principal = (request: { headers: IncomingHttpHeaders }): string =>
    request.headers.authorization ?? "";
  app.use("/orders", gateway.keys({ principal, ...options.keys }));
  app.use(options.handler);
  app.use((error: unknown, _request: Request, response: Response, _next: unknown) => {
    response.status(500).json({ error: String(error) });
  });
  const server = createServer((request, response) => {
    app(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  return {
    ...{ gateway, url, pool, faults },
    ask: async (path, init) => toldOf(await fetch(`${url}${path}`, init)),
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      gateway.close();
      if (!pool.ended) await pool.end();
    },
  };
}

async function toldOf(response: Response_): Promise<Told> {
  const text = await response.text();
  let body: unknown = text;
  if (/json/.test(response.headers.get("content-type") ?? "")) body = JSON.parse(text);
  return {
    status: response.status,
    code: typeof body === "object" && body !== null && "code" in body ? body.code : null,
    body,
    replayed: response.headers.get("idempotent-replayed") === "true",
    headers: response.headers,
  };
}

type Response_ = Awaited<ReturnType<typeof fetch>>;

/** What a payment says. */
export interface PaymentWords {
  readonly id?: string;
  readonly nonce?: string;
  readonly from?: string;
}

/** The headers of a payment, as the official client writes them. */
export function paymentHeaders(words: PaymentWords = {}): Record<string, string> {
  const payload = {
    x402Version: 2,
    payload: {
      signature: "0x5",
      authorization: { from: words.from ?? "0xaa", to: "0xbb", nonce: words.nonce ?? "0x01" },
    },
    ...(words.id === undefined
      ? {}
      : { extensions: { "payment-identifier": { info: { required: false, id: words.id } } } }),
  };
  return { "payment-signature": Buffer.from(JSON.stringify(payload)).toString("base64") };
}

/** The header that says how a settlement went. */
export function settlement(success: boolean): string {
  const said = { success, transaction: success ? "0x1" : "", network: "eip155:31337" };
  return Buffer.from(JSON.stringify(said)).toString("base64");
}

/** A door that opens once. */
export function gate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), passed };
}
