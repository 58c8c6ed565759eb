/** The requests of a payment over x402. */
import type { JsonObject } from "./errors.ts";
import { LedgerError } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { objectOf, textOf } from "./intent.ts";
import { paymentHeader, settlementOf } from "./x402-wire.ts";
import type { Settlement } from "./x402-wire.ts";

/** How a paid request ended. */
export interface Answer {
  /** The goods; `null`: none came. */
  readonly goods: JsonObject | null;
  readonly settlement: Settlement | null;
  /** What happened, in words. */
  readonly said: string;
}

// What a row can reasonably hold; larger goods are for a file, and the row says how large they are.
const GOODS_BYTES_MAX = 4 * 1024 * 1024;

/** Sends the request of an intent, with a payment or without one. */
export function sendRequest(
  fetching: typeof fetch,
  intent: LedgerIntent,
  payment: JsonObject | null,
  timeoutMs: number,
): Promise<Response> {
  const { url, method, body, headers } = intent.request;
  const address = textOf(url);
  if (address === null) {
    throw new LedgerError("invalid", `${intent.intentId} has no url in its request`, {
      intentId: intent.intentId,
    });
  }
  const given = Object.entries(objectOf(headers)).flatMap(([name, value]) =>
    typeof value === "string" ? [[name, value]] : [],
  );
  const text = textOf(body);
  return fetching(address, {
    method: textOf(method) ?? "GET",
    headers: {
      ...(Object.fromEntries(given) as Record<string, string>),
      ...(payment === null ? {} : paymentHeader(payment)),
    },
    ...(text === null ? {} : { body: text }),
    // A payment is for the server that asked for it, not for one that it points to.
    redirect: "manual",
    signal: AbortSignal.timeout(timeoutMs),
  });
}

/** Sends the payment; whatever happens is an answer, since the money may move all the same. */
export async function sendPayment(
  fetching: typeof fetch,
  intent: LedgerIntent,
  payment: JsonObject,
  timeoutMs: number,
): Promise<Answer> {
  let settlement: Settlement | null = null;
  try {
    const response = await sendRequest(fetching, intent, payment, timeoutMs);
    settlement = settlementOf(response.headers.get("payment-response"));
    const said = `status ${response.status}`;
    return { goods: response.ok ? await goodsOf(response) : null, settlement, said };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { goods: null, settlement, said };
  }
}

async function goodsOf(response: Response): Promise<JsonObject> {
  const kept = { status: response.status, contentType: response.headers.get("content-type") };
  const bytes = await bytesOf(response);
  if (bytes === null) {
    const announced = Number(response.headers.get("content-length") ?? 0);
    return { ...kept, bytes: announced > 0 ? announced : null, body: null };
  }
  const text = bytes.toString("utf8");
  // jsonb holds neither zero bytes nor what is no text.
  const isText = Buffer.from(text, "utf8").equals(bytes) && !text.includes("\u0000");
  return isText
    ? { ...kept, encoding: "utf8", body: text }
    : { ...kept, encoding: "base64", body: bytes.toString("base64") };
}

/** The body; `null`: too large. No more of it is read than is kept, however much is sent. */
async function bytesOf({ body }: Response): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > GOODS_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
