// Goal: keys, idempotency, errors and faults are those of Stripe. Method: SDK and raw requests.
import Stripe from "stripe";
import { expect, test } from "vitest";
import { READ_KEY, sdk, withSandbox, WRITE_KEY } from "./stripe-support.ts";

const SALE = { amount: 2_000, currency: "usd", payment_method: "pm_card_visa", confirm: true };
const FORM = "amount=2000&currency=usd&payment_method=pm_card_visa&confirm=true";
const DAY_MS = 24 * 60 * 60 * 1_000;

function post(
  url: string,
  key: string,
  body = FORM,
  path = "/v1/payment_intents",
): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    body,
    headers: {
      authorization: `Bearer ${WRITE_KEY}`,
      "content-type": "application/x-www-form-urlencoded",
      "idempotency-key": key,
    },
  });
}

async function code(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code?: string; type: string } };
  return body.error.code ?? body.error.type;
}

test("default: a replay gives the first answer, marked as such", async () => {
  await withSandbox({}, async ({ url, control }) => {
    const first = await post(url, "k1");
    const again = await post(url, "k1");
    expect(await again.text()).toBe(await first.text());
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.headers.get("original-request")).toBe(first.headers.get("request-id"));
    expect(again.headers.get("request-id")).not.toBe(first.headers.get("request-id"));
    control.advance(DAY_MS);
    expect((await post(url, "k1")).headers.get("idempotent-replayed")).toBeNull();
  });
});

test("error: a key for other parameters or another endpoint answers 400", async () => {
  await withSandbox({}, async ({ url }) => {
    await post(url, "k1");
    const other = await post(url, "k1", FORM.replace("2000", "2001"));
    expect([other.status, await code(other)]).toEqual([400, "idempotency_error"]);
    const elsewhere = await post(url, "k1", FORM, "/v1/charges");
    expect([elsewhere.status, await code(elsewhere)]).toEqual([400, "idempotency_error"]);
  });
});

test("error: a key in use answers 409", async () => {
  await withSandbox({}, async ({ url, control }) => {
    control.fault({ kind: "delay", delayMs: 100, method: "POST" });
    const [first, second] = await Promise.all([post(url, "k1"), post(url, "k1")]);
    expect([first.status, second.status].sort()).toEqual([200, 409]);
    const conflict = first.status === 409 ? first : second;
    expect(await code(conflict)).toBe("idempotency_key_in_use");
  });
});

test("behavior: declines and 500s after running are kept, invalid parameters are not", async () => {
  await withSandbox({}, async ({ url, control }) => {
    const declined = FORM.replace("visa", "chargeDeclined");
    expect((await post(url, "k1", declined)).status).toBe(402);
    expect((await post(url, "k1", declined)).headers.get("idempotent-replayed")).toBe("true");
    control.fault({ kind: "error_after", path: "/v1/payment_intents" });
    expect((await post(url, "k2")).status).toBe(500);
    expect((await post(url, "k2")).status).toBe(500);
    control.fault({ kind: "error_before" });
    expect((await post(url, "k3")).status).toBe(500);
    expect((await post(url, "k3")).status).toBe(200);
    expect((await post(url, "k4", "amount=x&currency=usd")).status).toBe(400);
    expect((await post(url, "k4")).status).toBe(200);
  });
});

test("behavior: a lost answer is charged once, since the SDK sends its key again", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.fault({ kind: "lost_response", method: "POST" });
    const paid = await stripe.paymentIntents.create(SALE);
    expect(control.requests.map((entry) => [entry.status, entry.replayed])).toEqual([
      [0, false],
      [200, true],
    ]);
    expect((await stripe.charges.list()).data.map((charge) => charge.payment_intent)).toEqual([
      paid.id,
    ]);
  });
});

test("error: keys that are missing, malformed or revoked answer 401", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const bare = await fetch(`${sandbox.url}/v1/account`);
    expect(bare.status).toBe(401);
    await expect(sdk(sandbox, "nonsense").accounts.retrieve("acct_x")).rejects.toBeInstanceOf(
      Stripe.errors.StripeAuthenticationError,
    );
    sandbox.control.revokeKey(WRITE_KEY);
    await expect(stripe.charges.list()).rejects.toMatchObject({ statusCode: 401 });
  });
});

test("error: a restricted key reads and cannot write", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const reader = sdk(sandbox, READ_KEY);
    const paid = await stripe.paymentIntents.create(SALE);
    expect((await reader.paymentIntents.retrieve(paid.id)).id).toBe(paid.id);
    await expect(reader.paymentIntents.create(SALE)).rejects.toBeInstanceOf(
      Stripe.errors.StripePermissionError,
    );
    await expect(reader.customers.del("cus_1")).rejects.toMatchObject({ statusCode: 403 });
  });
});

test("behavior: live and test objects do not see each other", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const paid = await stripe.paymentIntents.create(SALE);
    const live = sdk(sandbox, "sk_live_sandbox0123456789");
    await expect(live.paymentIntents.retrieve(paid.id)).rejects.toMatchObject({ statusCode: 404 });
    expect((await live.paymentIntents.create(SALE)).livemode).toBe(true);
  });
});

test("error: limits and lock time-outs answer 429 in their two shapes", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.fault({ kind: "rate_limit", retryAfter: "2", count: 2, path: "/v1/charges*" });
    const limited = await stripe.charges.list().then(
      () => undefined,
      (reason: unknown) => reason as Stripe.errors.StripeError,
    );
    expect(limited).toBeInstanceOf(Stripe.errors.StripeRateLimitError);
    expect(limited?.headers).toMatchObject({ "retry-after": "2" });
    await expect(stripe.charges.list()).rejects.toMatchObject({ statusCode: 429 });
    control.fault({ kind: "lock_timeout" });
    await expect(stripe.charges.list()).rejects.toMatchObject({ code: "lock_timeout" });
    expect((await stripe.charges.list()).data).toEqual([]);
  });
});

test("behavior: stale reads miss the object or its charge for a while", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    const { id } = control.seed.paymentIntent({});
    control.fault({ kind: "no_latest_charge", id, count: 2 });
    control.fault({ kind: "resource_missing", id, nth: 3 });
    expect((await stripe.paymentIntents.retrieve(id)).latest_charge).toBeNull();
    expect((await stripe.paymentIntents.retrieve(id)).latest_charge).toBeNull();
    await expect(stripe.paymentIntents.retrieve(id)).rejects.toMatchObject({ statusCode: 404 });
    expect((await stripe.paymentIntents.retrieve(id)).latest_charge).toMatch(/^ch_/);
  });
});

test("error: a cut body and a proxy's page reach the SDK as they would", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.fault({ kind: "cut_body" });
    await expect(stripe.charges.list()).rejects.toBeInstanceOf(Stripe.errors.StripeConnectionError);
    control.fault({ kind: "respond", status: 502, body: "<html>bad gateway</html>" });
    await expect(stripe.charges.list()).rejects.toBeInstanceOf(Stripe.errors.StripeAPIError);
  });
});

test("behavior: another process steers the sandbox over HTTP", async () => {
  await withSandbox({}, async ({ url }, stripe) => {
    const steer = (action: string, body: unknown): Promise<Response> =>
      fetch(`${url}/_sandbox/${action}`, { method: "POST", body: JSON.stringify(body) });
    await steer("seed/payment_intent", { id: "pi_fixed", amount: 9_900, created: 1_700_000_000 });
    await steer("faults", { kind: "error_before", count: 1 });
    await expect(stripe.paymentIntents.retrieve("pi_fixed")).rejects.toMatchObject({
      statusCode: 500,
    });
    expect((await stripe.paymentIntents.retrieve("pi_fixed")).amount).toBe(9_900);
    const counts = await (await fetch(`${url}/_sandbox/counts`)).json();
    expect(counts).toEqual({ "GET /v1/payment_intents/:id": 1 });
    expect((await steer("faults", { kind: "no such fault" })).status).toBe(400);
    expect((await steer("nothing", {})).status).toBe(404);
  });
});
