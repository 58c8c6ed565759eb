// Goal: lists, search and the events list page and filter as Stripe's. Method: the official SDK.
import { expect, test } from "vitest";
import { withSandbox } from "./stripe-support.ts";

const T = 1_700_000_000;
const DAY_MS = 24 * 60 * 60 * 1_000;

test("default: pages are newest first and lose nothing in a crowded second", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.seed.bulk(250, () => ({ created: T }));
    control.seed.paymentIntent({ id: "pi_before", created: T - 1 });
    control.seed.paymentIntent({ id: "pi_after", created: T + 1 });
    const all = await stripe.paymentIntents
      .list({ limit: 100 })
      .autoPagingToArray({ limit: 1_000 });
    expect(new Set(all.map((intent) => intent.id)).size).toBe(252);
    expect([all[0]?.id, all.at(-1)?.id]).toEqual(["pi_after", "pi_before"]);
    const inside = await stripe.paymentIntents
      .list({ limit: 100, created: { gte: T, lt: T + 1 } })
      .autoPagingToArray({ limit: 1_000 });
    expect(inside).toHaveLength(250);
    const upwards = await stripe.paymentIntents
      .list({ limit: 100, ending_before: "pi_before" })
      .autoPagingToArray({ limit: 1_000 });
    expect(upwards).toHaveLength(251);
  });
});

test("behavior: bounds include or exclude as named, a bare number is that second", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    for (const offset of [0, 1, 2])
      control.seed.charge({ id: `ch_${String(offset)}`, created: T + offset });
    const ids = async (created: number | object): Promise<string[]> =>
      (await stripe.charges.list({ created })).data.map((charge) => charge.id);
    expect(await ids({ gt: T, lte: T + 2 })).toEqual(["ch_2", "ch_1"]);
    expect(await ids({ gte: T, lt: T + 2 })).toEqual(["ch_1", "ch_0"]);
    expect(await ids(T + 1)).toEqual(["ch_1"]);
  });
});

test("behavior: objects seeded in any order and in the past take their place", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.seed.charge({ id: "ch_new", created: T + 9, customer: "cus_1" });
    control.seed.charge({ id: "ch_old", created: T - 9, customer: "cus_1" });
    control.seed.charge({ id: "ch_mid", created: T, customer: "cus_1" });
    const listed = await stripe.charges.list({ customer: "cus_1" });
    expect(listed.data.map((charge) => charge.id)).toEqual(["ch_new", "ch_mid", "ch_old"]);
  });
});

test("error: limits, cursors and filters that do not exist answer 400", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.seed.charge({});
    await expect(stripe.charges.list({ limit: 101 })).rejects.toMatchObject({ statusCode: 400 });
    await expect(stripe.charges.list({ starting_after: "ch_x" })).rejects.toMatchObject({
      code: "resource_missing",
    });
    await expect(
      stripe.paymentIntents.list({ status: "succeeded" } as never),
    ).rejects.toMatchObject({ code: "parameter_unknown" });
    await expect(stripe.charges.list({ expand: ["data.amount"] })).rejects.toMatchObject({
      statusCode: 400,
    });
  });
});

test("behavior: expansion reaches through lists", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.seed.paymentIntent({ id: "pi_1" });
    const intents = await stripe.paymentIntents.list({ expand: ["data.latest_charge"] });
    expect(intents.data[0]?.latest_charge).toMatchObject({
      object: "charge",
      payment_intent: "pi_1",
    });
    const ledger = await stripe.balanceTransactions.list({
      expand: ["data.source.payment_intent"],
    });
    expect(ledger.data[0]?.source).toMatchObject({ payment_intent: { id: "pi_1" } });
  });
});

test("behavior: search matches metadata and lags behind the lists", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.settings.searchLagMs = 60_000;
    control.seed.paymentIntent({ id: "pi_1", amount: 500n, metadata: { order: "it's 7" } });
    const find = async (query: string): Promise<string[]> =>
      (await stripe.paymentIntents.search({ query })).data.map((intent) => intent.id);
    expect(await find(String.raw`metadata['order']:'it\'s 7'`)).toEqual([]);
    const made = await stripe.paymentIntents.create({
      amount: 700,
      currency: "usd",
      confirm: true,
      payment_method: "pm_card_visa",
    });
    expect(await find("amount:700")).toEqual([]);
    control.advance(60_000);
    await stripe.paymentIntents.update(made.id, { metadata: { order: "late" } });
    expect(await find("amount:700")).toEqual([made.id]);
    expect(await find("metadata['order']:'late'")).toEqual([]);
    expect(await find(String.raw`metadata['order']:'it\'s 7'`)).toEqual(["pi_1"]);
    expect(await find("amount>=500 amount<600 status:'succeeded'")).toEqual(["pi_1"]);
    expect(await find("amount>800 OR currency:'eur'")).toEqual([]);
    await expect(find("amount>1 AND amount<9 OR currency:'eur'")).rejects.toMatchObject({
      statusCode: 400,
    });
  });
});

test("behavior: events vanish after thirty days and may be listed late or never", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.eventRule({ action: "list_delay", type: "charge.succeeded", delayMs: 3_000 });
    control.eventRule({ action: "not_generated", type: "payment_intent.succeeded" });
    control.seed.paymentIntent({ id: "pi_1" });
    const types = async (): Promise<string[]> =>
      (await stripe.events.list()).data.map((event) => event.type);
    expect(await types()).toEqual(["payment_intent.created"]);
    control.advance(3_000);
    expect(await types()).toEqual(["charge.succeeded", "payment_intent.created"]);
    control.advance(30 * DAY_MS);
    expect(await types()).toEqual([]);
  });
});

test("behavior: an event keeps the shape of its version and the state of its moment", async () => {
  await withSandbox({ apiVersion: "2020-08-27" }, async ({ control }, stripe) => {
    const { id } = control.seed.paymentIntent({ charge: { id: "ch_1" } });
    control.seed.refund({ charge: "ch_1", amount: 300n });
    const event = (await stripe.events.list({ type: "charge.succeeded" })).data[0];
    expect(event?.api_version).toBe("2020-08-27");
    expect(event?.data.object).toMatchObject({ id: "ch_1", amount_refunded: 0 });
    const paid = (await stripe.events.list({ types: ["payment_intent.succeeded"] })).data[0];
    expect(paid?.data.object).toMatchObject({ id, charges: { data: [{ id: "ch_1" }] } });
  });
});

test("behavior: pages cost the same however long the history is", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.seed.bulk(20_000, (index) => ({ created: T + (index % 5_000), events: false }));
    const walked = await stripe.charges
      .list({ limit: 100, created: { gte: T, lt: T + 500 } })
      .autoPagingToArray({ limit: 10_000 });
    expect(walked).toHaveLength(2_000);
  });
});

test("behavior: an intent is tied to its invoice by an invoice payment", async () => {
  await withSandbox({}, async ({ control }, stripe) => {
    control.seed.paymentIntent({ id: "pi_sub", invoice: "in_1" });
    control.seed.paymentIntent({ id: "pi_once" });
    expect(await stripe.paymentIntents.retrieve("pi_sub")).not.toHaveProperty("invoice");
    const tied = async (id: string): Promise<unknown[]> => {
      const payment = { type: "payment_intent" as const, payment_intent: id };
      return (await stripe.invoicePayments.list({ payment })).data.map((item) => item.invoice);
    };
    expect(await tied("pi_sub")).toEqual(["in_1"]);
    expect(await tied("pi_once")).toEqual([]);
    expect((await stripe.invoicePayments.list({ limit: 1 })).data).toHaveLength(1);
  });
});
