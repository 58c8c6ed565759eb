// Goal: payments go through the states, charges and events of Stripe. Method: the official SDK.
import Stripe from "stripe";
import { expect, test } from "vitest";
import { chargeIdOf, withSandbox } from "./stripe-support.ts";

const SALE = { amount: 2_000, currency: "usd", payment_method: "pm_card_visa", confirm: true };

test("default: a confirmed card payment succeeds with a booked charge", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const made = await stripe.paymentIntents.create({ ...SALE, metadata: { intent_id: "op-1" } });
    expect(made.status).toBe("succeeded");
    await sandbox.control.idle();
    const read = await stripe.paymentIntents.retrieve(made.id, {
      expand: ["latest_charge.balance_transaction"],
    });
    const charge = read.latest_charge as Stripe.Charge;
    const entry = charge.balance_transaction as Stripe.BalanceTransaction;
    expect(charge.paid && charge.captured).toBe(true);
    expect(charge.metadata).toEqual({ intent_id: "op-1" });
    expect(charge.billing_details.email).toContain("@");
    expect(entry).toMatchObject({ amount: 2_000, fee: 88, net: 1_912, type: "charge" });
  });
});

test("behavior: events tell of every step with the request's id and key", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const made = await stripe.paymentIntents.create(SALE, { idempotencyKey: "key-1" });
    await sandbox.control.idle();
    const events = await stripe.events.list({ limit: 100 });
    expect(events.data.map((event) => event.type)).toEqual([
      "charge.updated",
      "payment_intent.succeeded",
      "charge.succeeded",
      "payment_intent.created",
    ]);
    expect(events.data.map((event) => event.request?.idempotency_key)).toEqual([
      null,
      "key-1",
      "key-1",
      "key-1",
    ]);
    expect(events.data[1]?.request?.id).toBe(made.lastResponse.requestId);
    expect(events.data[0]?.data.previous_attributes).toEqual({ balance_transaction: null });
  });
});

test("behavior: a decline keeps a failed charge and the intent can still be paid", async () => {
  await withSandbox({}, async (_, stripe) => {
    const declined = stripe.paymentIntents.create({
      ...SALE,
      payment_method: "pm_card_chargeDeclinedInsufficientFunds",
    });
    const error = await declined.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(Stripe.errors.StripeCardError);
    const card = error as Stripe.errors.StripeCardError;
    expect(card.decline_code).toBe("insufficient_funds");
    const id = card.payment_intent?.id ?? "";
    const paid = await stripe.paymentIntents.confirm(id, { payment_method: "pm_card_visa" });
    expect(paid.status).toBe("succeeded");
    const charges = await stripe.charges.list({ payment_intent: id });
    expect(charges.data.map((charge) => charge.status)).toEqual(["succeeded", "failed"]);
  });
});

test("behavior: a partial capture shows the rest as refunded", async () => {
  await withSandbox({}, async (_, stripe) => {
    const held = await stripe.paymentIntents.create({ ...SALE, capture_method: "manual" });
    expect(held).toMatchObject({ status: "requires_capture", amount_capturable: 2_000 });
    const taken = await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1_500 });
    expect(taken).toMatchObject({ status: "succeeded", amount_received: 1_500 });
    const charge = await stripe.charges.retrieve(chargeIdOf(taken));
    expect(charge).toMatchObject({ amount_captured: 1_500, amount_refunded: 500, refunded: false });
    expect((await stripe.refunds.list({ charge: charge.id })).data).toHaveLength(1);
  });
});

test("behavior: canceling works until the intent has succeeded", async () => {
  await withSandbox({}, async (_, stripe) => {
    const open = await stripe.paymentIntents.create({ amount: 500, currency: "eur" });
    const canceled = await stripe.paymentIntents.cancel(open.id, {
      cancellation_reason: "duplicate",
    });
    expect(canceled).toMatchObject({ status: "canceled", cancellation_reason: "duplicate" });
    const paid = await stripe.paymentIntents.create(SALE);
    await expect(stripe.paymentIntents.cancel(paid.id)).rejects.toMatchObject({
      code: "payment_intent_unexpected_state",
      payment_intent: { id: paid.id, status: "succeeded" },
    });
  });
});

test("behavior: refunds add up, and one that fails later gives the total back", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const paid = await stripe.paymentIntents.create(SALE);
    const first = await stripe.refunds.create({ payment_intent: paid.id, amount: 700 });
    await stripe.refunds.create({ payment_intent: paid.id });
    const charge = await stripe.charges.retrieve(chargeIdOf(paid));
    expect(charge).toMatchObject({ amount_refunded: 2_000, refunded: true });
    await expect(stripe.refunds.create({ charge: charge.id })).rejects.toMatchObject({
      code: "charge_already_refunded",
    });
    sandbox.control.fail(first.id);
    const failed = await stripe.refunds.retrieve(first.id);
    expect(failed).toMatchObject({ status: "failed", failure_reason: "lost_or_stolen_card" });
    const after = await stripe.charges.retrieve(charge.id);
    expect(after).toMatchObject({ amount_refunded: 1_300, refunded: false });
    const types = (await stripe.events.list({ type: "refund.*" })).data.map((event) => event.type);
    expect(types).toEqual(["refund.updated", "refund.failed", "refund.created", "refund.created"]);
  });
});

test("behavior: a dispute blocks refunds, an inquiry does not", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const one = await stripe.paymentIntents.create({
      ...SALE,
      payment_method: "pm_card_createDispute",
    });
    const dispute = (await stripe.disputes.list({ payment_intent: one.id })).data[0];
    expect(dispute).toMatchObject({ status: "needs_response", is_charge_refundable: false });
    await expect(stripe.refunds.create({ payment_intent: one.id })).rejects.toMatchObject({
      code: "charge_disputed",
    });
    sandbox.control.closeDispute(dispute?.id ?? "", true);
    expect((await stripe.disputes.retrieve(dispute?.id ?? "")).status).toBe("won");
    const two = await stripe.paymentIntents.create({
      ...SALE,
      payment_method: "pm_card_createDisputeInquiry",
    });
    expect((await stripe.refunds.create({ payment_intent: two.id })).status).toBe("succeeded");
  });
});

test("behavior: a bank debit is processing until the bank answers", async () => {
  await withSandbox({}, async (sandbox, stripe) => {
    const debit = await stripe.paymentIntents.create({
      amount: 1_000,
      currency: "eur",
      confirm: true,
      payment_method_data: { type: "sepa_debit", sepa_debit: { iban: "AT321904300235473204" } },
    });
    expect(debit.status).toBe("processing");
    expect(debit.latest_charge).toMatch(/^py_/);
    sandbox.control.settle(debit.id, "failed");
    expect((await stripe.paymentIntents.retrieve(debit.id)).status).toBe("requires_payment_method");
  });
});

test("behavior: a destination charge is mirrored in the connected account only there", async () => {
  await withSandbox({}, async (_, stripe) => {
    const paid = await stripe.paymentIntents.create({
      ...SALE,
      transfer_data: { destination: "acct_connected" },
    });
    const charge = await stripe.charges.retrieve(chargeIdOf(paid));
    const mirror = (await stripe.charges.list({}, { stripeAccount: "acct_connected" })).data[0];
    expect(mirror?.id).toMatch(/^py_/);
    expect(mirror?.source_transfer).toBe(charge.transfer);
    expect((await stripe.charges.list()).data).toHaveLength(1);
    await expect(
      stripe.charges.retrieve(charge.id, {}, { stripeAccount: "acct_connected" }),
    ).rejects.toMatchObject({ code: "resource_missing", statusCode: 404 });
  });
});

test("error: endive refuses payment_method_types where the caller names the version", async () => {
  await withSandbox({}, async (_, stripe) => {
    await expect(
      stripe.paymentIntents.create({ ...SALE, payment_method_types: ["card"] } as never),
    ).rejects.toMatchObject({ code: "payment_method_types_no_longer_supported" });
  });
});

test("behavior: old versions embed charges and refunds, new ones name one charge", async () => {
  await withSandbox({}, async (_, stripe) => {
    const paid = await stripe.paymentIntents.create(SALE);
    await stripe.refunds.create({ payment_intent: paid.id, amount: 100 });
    const read = (apiVersion: string): Promise<Record<string, unknown>> =>
      stripe.rawRequest("GET", `/v1/payment_intents/${paid.id}`, undefined, {
        apiVersion,
      }) as Promise<Record<string, unknown>>;
    const old = await read("2020-08-27");
    expect(old).not.toHaveProperty("latest_charge");
    expect(old).toHaveProperty("invoice", null);
    expect(old["charges"]).toMatchObject({ total_count: 1, data: [{ id: paid.latest_charge }] });
    const acacia = await read("2024-09-30.acacia");
    expect(acacia).not.toHaveProperty("charges");
    expect(acacia).toHaveProperty("latest_charge", paid.latest_charge);
    const oldCharge = (await stripe.rawRequest(
      "GET",
      `/v1/charges/${chargeIdOf(paid)}`,
      undefined,
      { apiVersion: "2020-08-27" },
    )) as unknown as { refunds: { data: { amount: number }[] } };
    expect(oldCharge.refunds.data[0]?.amount).toBe(100);
  });
});
