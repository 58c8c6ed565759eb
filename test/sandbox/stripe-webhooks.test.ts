// Goal: webhooks are signed, retried, repeated and reordered as Stripe's. Method: a real receiver.
import { expect, test } from "vitest";
import type { EndpointOrder } from "../../src/sandbox/stripe/control.ts";
import type { StripeSandbox } from "../../src/sandbox/stripe/server.ts";
import { sdk, startReceiver, typesOf, withSandbox } from "./stripe-support.ts";
import type { Receiver } from "./stripe-support.ts";

const SECRET = "whsec_first";

async function withReceiver(
  order: Partial<EndpointOrder>,
  run: (sandbox: StripeSandbox, receiver: Receiver, endpointId: string) => Promise<void>,
): Promise<void> {
  const receiver = await startReceiver();
  try {
    await withSandbox({ settings: { retryScheduleMs: [5, 5] } }, async (sandbox) => {
      const endpoint = sandbox.control.addEndpoint({
        url: receiver.url,
        secrets: [SECRET],
        enabledEvents: ["payment_intent.*"],
        ...order,
      });
      await run(sandbox, receiver, endpoint.id);
    });
  } finally {
    await receiver.close();
  }
}

test("default: an event is delivered with a signature that the SDK accepts", async () => {
  await withReceiver({}, async (sandbox, receiver) => {
    const { id } = sandbox.control.seed.paymentIntent({ idempotencyKey: "k1" });
    await sandbox.control.idle();
    const { webhooks } = sdk(sandbox);
    const events = receiver.deliveries.map(({ body, signature }) =>
      webhooks.constructEvent(body, signature, SECRET),
    );
    expect(events.map((event) => event.type).sort()).toEqual([
      "payment_intent.created",
      "payment_intent.succeeded",
    ]);
    expect(events[0]?.data.object).toMatchObject({ id });
    expect(events[0]?.request?.idempotency_key).toBe("k1");
  });
});

test("behavior: while a secret is rolled both accept", async () => {
  await withReceiver({}, async (sandbox, receiver, endpointId) => {
    const next = sandbox.control.rollSecret(endpointId);
    sandbox.control.seed.paymentIntent({});
    await sandbox.control.idle();
    const { body = "", signature = "" } = receiver.deliveries[0] ?? {};
    const { webhooks } = sdk(sandbox);
    expect(webhooks.constructEvent(body, signature, SECRET)).toBeDefined();
    expect(webhooks.constructEvent(body, signature, next)).toBeDefined();
  });
});

test("behavior: errors and redirects are retried until the schedule ends", async () => {
  await withReceiver({ enabledEvents: ["payment_intent.succeeded"] }, async (sandbox, receiver) => {
    receiver.answers.push(500, 302);
    sandbox.control.seed.paymentIntent({});
    await sandbox.control.idle();
    expect(sandbox.control.deliveries().map((attempt) => attempt.status)).toEqual([500, 302, 200]);
    receiver.answers.push(500, 500, 500);
    sandbox.control.seed.paymentIntent({});
    await sandbox.control.idle();
    const stripe = sdk(sandbox);
    const type = "payment_intent.succeeded";
    const failed = await stripe.events.list({ delivery_success: false, type });
    expect(failed.data.map((event) => event.pending_webhooks)).toEqual([1]);
    expect((await stripe.events.list({ delivery_success: true, type })).data).toHaveLength(1);
  });
});

test("behavior: events can be dropped, repeated, twinned and held back", async () => {
  await withReceiver({ enabledEvents: ["payment_intent.succeeded"] }, async (sandbox, receiver) => {
    const { control } = sandbox;
    control.eventRule({ action: "drop" });
    control.seed.paymentIntent({});
    await control.idle();
    expect(receiver.deliveries).toHaveLength(0);
    control.eventRule({ action: "repeat", copies: 2 });
    control.seed.paymentIntent({});
    await control.idle();
    expect(new Set(receiver.deliveries.map(({ body }) => body)).size).toBe(1);
    expect(receiver.deliveries).toHaveLength(3);
    control.eventRule({ action: "twin", type: "payment_intent.succeeded" });
    control.seed.paymentIntent({});
    await control.idle();
    const ids = receiver.deliveries
      .slice(3)
      .map(({ body }) => (JSON.parse(body) as { id: string }).id);
    expect(new Set(ids).size).toBe(2);
    control.eventRule({ action: "hold", count: 2 });
    control.seed.paymentIntent({ id: "pi_first" });
    control.seed.paymentIntent({ id: "pi_second" });
    expect(control.held()).toHaveLength(2);
    control.release("reverse");
    await control.idle();
    const objects = receiver.deliveries
      .slice(5)
      .map(({ body }) => (JSON.parse(body) as { data: { object: { id: string } } }).data.object.id);
    expect(objects.sort()).toEqual(["pi_first", "pi_second"]);
  });
});

test("error: forged and stale signatures are refused by the SDK", async () => {
  await withReceiver({ enabledEvents: ["payment_intent.succeeded"] }, async (sandbox, receiver) => {
    sandbox.control.eventRule({ action: "bad_signature" });
    sandbox.control.seed.paymentIntent({});
    await sandbox.control.idle();
    sandbox.control.eventRule({ action: "skew", skewSeconds: -400 });
    sandbox.control.seed.paymentIntent({});
    await sandbox.control.idle();
    const { webhooks } = sdk(sandbox);
    expect(receiver.deliveries).toHaveLength(2);
    for (const { body, signature } of receiver.deliveries) {
      expect(() => webhooks.constructEvent(body, signature, SECRET)).toThrow();
    }
  });
});

test("behavior: a thin event names its object and its snapshot twin", async () => {
  const thin = { payload: "thin", enabledEvents: ["v1.payment_intent.succeeded"] } as const;
  await withReceiver(thin, async (sandbox, receiver) => {
    const { id } = sandbox.control.seed.paymentIntent({ idempotencyKey: "k1" });
    await sandbox.control.idle();
    const stripe = sdk(sandbox);
    const { body = "", signature = "" } = receiver.deliveries[0] ?? {};
    const note = stripe.parseEventNotification(body, signature, SECRET);
    if (note.type !== "v1.payment_intent.succeeded") throw new Error(`unexpected ${note.type}`);
    const event = await note.fetchEvent();
    expect(event.reason?.request?.idempotency_key).toBe("k1");
    const snapshot = await stripe.events.retrieve(event.snapshot_event ?? "");
    expect(snapshot.data.object).toMatchObject({ id });
    expect(await note.fetchRelatedObject()).toMatchObject({ id, object: "payment_intent" });
  });
});

test("behavior: endpoints have their own version, connected accounts their own", async () => {
  await withReceiver({ apiVersion: "2020-08-27", connect: true }, async (sandbox, receiver) => {
    sandbox.control.seed.paymentIntent({});
    sandbox.control.seed.paymentIntent({ account: "acct_c" });
    await sandbox.control.idle();
    expect(typesOf(receiver).sort()).toEqual([
      "payment_intent.created",
      "payment_intent.succeeded",
    ]);
    const event = JSON.parse(receiver.deliveries[0]?.body ?? "{}") as Record<string, unknown>;
    expect(event).toMatchObject({ account: "acct_c", api_version: "2020-08-27" });
    expect(event["data"]).toMatchObject({ object: { charges: { object: "list" } } });
  });
});

test("behavior: an endpoint made by the API has a secret, a resend delivers again", async () => {
  const receiver = await startReceiver();
  await withSandbox({}, async (sandbox, stripe) => {
    const made = await stripe.webhookEndpoints.create({
      url: receiver.url,
      enabled_events: ["charge.succeeded"],
    });
    expect(made.secret).toMatch(/^whsec_/);
    sandbox.control.seed.charge({});
    await sandbox.control.idle();
    sandbox.control.deliver(sandbox.control.events()[0]?.id ?? "");
    await sandbox.control.idle();
    expect(typesOf(receiver)).toEqual(["charge.succeeded", "charge.succeeded"]);
    await stripe.webhookEndpoints.del(made.id);
    expect((await stripe.webhookEndpoints.list()).data).toEqual([]);
  });
  await receiver.close();
});
