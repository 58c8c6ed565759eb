import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Stripe from "stripe";
import { startStripeSandbox } from "../../src/sandbox/stripe/server.ts";
import type { StripeSandbox, StripeSandboxOptions } from "../../src/sandbox/stripe/server.ts";

/** A key that may write, and one that may only read. */
export const WRITE_KEY = "sk_test_sandbox0123456789";
export const READ_KEY = "rk_test_sandbox0123456789";

/** The official SDK pointed at a sandbox. */
export function sdk(
  sandbox: StripeSandbox,
  key = WRITE_KEY,
  config: Stripe.StripeConfig = {},
): Stripe {
  return new Stripe(key, {
    host: "127.0.0.1",
    port: sandbox.port,
    protocol: "http",
    telemetry: false,
    maxNetworkRetries: 0,
    ...config,
  });
}

/** Runs a test with a sandbox of its own and closes it afterwards. */
export async function withSandbox(
  options: StripeSandboxOptions,
  run: (sandbox: StripeSandbox, stripe: Stripe) => Promise<void>,
): Promise<void> {
  const sandbox = await startStripeSandbox(options);
  try {
    await run(sandbox, sdk(sandbox));
  } finally {
    await sandbox.close();
  }
}

/** The id of an intent's latest charge, which the API does not expand by itself. */
export function chargeIdOf(intent: Stripe.PaymentIntent): string {
  const charge = intent.latest_charge;
  return typeof charge === "string" ? charge : (charge?.id ?? "");
}

/** A webhook as it arrived. */
export interface Delivery {
  readonly body: string;
  readonly signature: string;
}

/** A receiver of webhooks that answers with whatever `answers` has next, else 200. */
export interface Receiver {
  readonly url: string;
  readonly deliveries: Delivery[];
  readonly answers: number[];
  readonly close: () => Promise<void>;
}

/** Starts a receiver on a free port. */
export async function startReceiver(): Promise<Receiver> {
  const deliveries: Delivery[] = [];
  const answers: number[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      deliveries.push({ body, signature: String(request.headers["stripe-signature"]) });
      response.writeHead(answers.shift() ?? 200, { location: "/elsewhere" }).end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}/webhooks/stripe`,
    deliveries,
    answers,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** The types of delivered events in order of arrival. */
export function typesOf(receiver: Receiver): string[] {
  return receiver.deliveries.map(({ body }) => (JSON.parse(body) as { type: string }).type);
}
