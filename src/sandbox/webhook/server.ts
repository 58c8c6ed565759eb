import { createHmac, timingSafeEqual } from "node:crypto";
import { startReceiver } from "../receiver.ts";
import type { ReceivedRequest, Receiver, ReceiverAnswer } from "../receiver.ts";

/** A message that was signed well; `body` is the parsed JSON. */
export interface WebhookDelivery {
  readonly id: string;
  readonly timestamp: number;
  readonly body: unknown;
}

/** A stand-in for a program that takes webhooks as the Standard Webhooks specification says. */
export interface WebhookSandbox extends Receiver {
  readonly webhookUrl: string;
  /** Accepted messages with their repeats, oldest first. */
  readonly deliveries: readonly WebhookDelivery[];
  readonly clear: () => void;
}

/** How the stand-in is set up. */
export interface WebhookSandboxOptions {
  /** `whsec_` and the key in base64. */
  readonly secret: string;
  /** Milliseconds; default the machine's clock. */
  readonly now?: () => number;
}

/** The specification's libraries refuse what is five minutes older or newer. */
const TOLERANCE_SECONDS = 300;

/** Starts it on a free port. */
export async function startWebhookSandbox(options: WebhookSandboxOptions): Promise<WebhookSandbox> {
  const deliveries: WebhookDelivery[] = [];
  const now = options.now ?? Date.now;
  const receiver = await startReceiver((request) => {
    const fault = faultOf(request, options.secret, now());
    if (fault !== null) return fault;
    deliveries.push({
      id: header(request, "webhook-id"),
      timestamp: Number(header(request, "webhook-timestamp")),
      body: JSON.parse(request.body) as unknown,
    });
    return { status: 204, body: "" };
  });
  return {
    ...receiver,
    webhookUrl: `${receiver.url}/alerts?team=payments`,
    deliveries,
    clear: () => {
      deliveries.length = 0;
    },
  };
}

function header(request: Omit<ReceivedRequest, "status">, name: string): string {
  const value = request.headers[name];
  return typeof value === "string" ? value : "";
}

function faultOf(
  request: Omit<ReceivedRequest, "status">,
  secret: string,
  now: number,
): ReceiverAnswer | null {
  if (request.method !== "POST") return { status: 405, body: "POST is taken" };
  const id = header(request, "webhook-id");
  const timestamp = header(request, "webhook-timestamp");
  if (id === "" || !/^\d+$/.test(timestamp)) return { status: 400, body: "missing headers" };
  if (Math.abs(now / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    return { status: 400, body: "message timestamp too old or too new" };
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const wanted = createHmac("sha256", key).update(`${id}.${timestamp}.${request.body}`).digest();
  const given = header(request, "webhook-signature").split(" ");
  const matches = given.some((signature) => {
    if (!signature.startsWith("v1,")) return false;
    const bytes = Buffer.from(signature.slice(3), "base64");
    return bytes.length === wanted.length && timingSafeEqual(bytes, wanted);
  });
  return matches ? null : { status: 401, body: "no matching signature" };
}
