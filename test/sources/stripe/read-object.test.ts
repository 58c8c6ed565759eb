/**
 * Goal: one reader gives the same facts for every API shape, and refuses instead of guessing.
 * Method: small objects in all spellings (cases B07, B22, B23, B29, B30, B33).
 */
import { describe, expect, test } from "vitest";

import { parseExactJson } from "../../../src/sources/stripe/parse-json.ts";
import { readObject } from "../../../src/sources/stripe/read-object.ts";
import {
  PERSONAL,
  SCOPE,
  SETTINGS,
  at,
  charge,
  dispute,
  ofKind,
  paid,
  paymentIntent,
  read,
  refund,
  sample,
} from "./shapes.ts";

describe("payment intents", () => {
  // Case B22: one payment in the five shapes that the field knows.
  const list = { object: "list", data: [charge()], has_more: false };
  const shapes = {
    "charges nested, latest_charge absent": paid({ charges: list, latest_charge: undefined }),
    "charges nested, latest_charge too": paid({ charges: list, invoice: null }),
    "latest_charge an id": paid({ invoice: null }),
    "latest_charge expanded": paid({ latest_charge: charge() }),
    "no invoice key": paid(),
  };
  test.each(Object.entries(shapes))("behavior: same payment, %s", (_name, shape) => {
    const reading = read(shape);
    const [intent] = ofKind(reading, "payment_intent");
    const charges = ofKind(reading, "charge");
    expect(intent).toMatchObject({
      id: "pi_1",
      status: "succeeded",
      amount: 2000n,
      amountReceived: 2000n,
      currency: "usd",
      latestCharge: "ch_1",
      customer: "cus_1",
      invoice: null,
      versionRank: 7,
    });
    expect(charges).toHaveLength(1);
    expect(charges[0]).toMatchObject({
      chargeId: "ch_1",
      paymentIntent: "pi_1",
      status: "succeeded",
      captured: true,
      amount: 2000n,
      amountCaptured: 2000n,
      payer: "cus_1",
    });
    expect(reading.refetch).toEqual([]);
  });

  test("behavior: a charge that is only named is derived, one that is carried is not", () => {
    expect(ofKind(read(paid()), "charge")[0]?.derived).toBe(true);
    expect(ofKind(read(paid({ latest_charge: charge() })), "charge")[0]?.derived).toBe(false);
  });

  test("behavior: failed attempts are charges of their own (B07)", () => {
    const failed = charge({ id: "ch_a", status: "failed", paid: false, captured: false });
    const reading = read(
      paid({
        latest_charge: "ch_b",
        charges: { data: [charge({ id: "ch_b" }), failed], has_more: false },
      }),
    );
    expect(ofKind(reading, "charge").map((fact) => [fact.chargeId, fact.status])).toEqual([
      ["ch_b", "succeeded"],
      ["ch_a", "failed"],
    ]);
  });

  test("behavior: success without a charge is a fact and is fetched again (B23)", () => {
    const reading = read(paid({ latest_charge: null }));
    expect(ofKind(reading, "payment_intent")[0]?.status).toBe("succeeded");
    expect(reading.refetch.map((entry) => entry.id)).toEqual(["pi_1"]);
  });

  test("behavior: expanded customers, destinations and unknown states are read", () => {
    const [fact] = ofKind(
      read(
        paymentIntent({
          status: "requires_new_thing",
          customer: { id: "cus_7", object: "customer", email: "pat@example.org", deleted: true },
          transfer_data: { destination: { id: "acct_d", object: "account" } },
          on_behalf_of: "acct_o",
        }),
      ),
      "payment_intent",
    );
    expect(fact).toMatchObject({
      status: "requires_new_thing",
      versionRank: 0,
      customer: "cus_7",
      payee: "acct_d",
    });
  });

  test("behavior: methods that settle days later are named", () => {
    const asynchronous = (fields: Record<string, unknown>): boolean | undefined =>
      ofKind(read(paymentIntent(fields)), "payment_intent")[0]?.asynchronous;
    expect(asynchronous({ payment_method_types: ["us_bank_account"] })).toBe(true);
    expect(asynchronous({ payment_method_types: ["card", "sepa_debit"] })).toBe(false);
    expect(asynchronous({ status: "processing" })).toBe(true);
  });

  test.each([
    ["succeeded and nothing received", paid({ amount_received: 0 })],
    ["a negative amount", paymentIntent({ amount: -1 })],
    ["a fraction", paymentIntent({ amount: 10.5 })],
    ["a rounded number", paymentIntent({ amount: 2 ** 53 })],
    ["no amount", paymentIntent({ amount: null })],
    ["an amount in words", paymentIntent({ amount: "ten" })],
    ["no currency", paymentIntent({ currency: "" })],
    ["a currency sign", paymentIntent({ currency: "€" })],
    ["no status", paymentIntent({ status: null })],
    ["latest_charge a number", paid({ latest_charge: 7 })],
    ["no creation time", paymentIntent({ created: "yesterday" })],
  ])("error: %s is refetched and no fact", (_name, shape) => {
    const reading = read(shape);
    expect(reading.facts).toEqual([]);
    expect(reading.refetch.map((entry) => entry.id)).toEqual(["pi_1"]);
  });

  test("error: an object without an id gives nothing", () => {
    expect(read(paymentIntent({ id: null }))).toEqual({ facts: [], refetch: [] });
  });
});

describe("charges", () => {
  test("default", () => {
    const [fact] = ofKind(read(charge({ invoice: { id: "in_1" }, transfer: "tr_1" })), "charge");
    expect(fact).toMatchObject({
      scope: SCOPE,
      rail: "stripe",
      invoice: "in_1",
      transfer: "tr_1",
      sourceTransfer: null,
      derived: false,
      createdAt: at(1),
      versionAt: at(10),
      versionRank: 3,
    });
    expect(fact?.instrument).toMatch(/^[0-9a-f]{32}$/);
    expect(fact?.purpose).toMatch(/^[0-9a-f]{32}$/);
  });

  test("behavior: an authorization moved no money", () => {
    const [fact] = ofKind(read(charge({ captured: false, amount_captured: 0 })), "charge");
    expect(fact).toMatchObject({ status: "succeeded", captured: false, amountCaptured: 0n });
  });

  test("behavior: equal cards have equal instruments, whatever the method or the age", () => {
    const instrument = (fields: Record<string, unknown>): string | null | undefined =>
      ofKind(read(charge(fields)), "charge")[0]?.instrument;
    const bank = { type: "us_bank_account", us_bank_account: { fingerprint: "fpSampleCard" } };
    const legacy = { payment_method_details: null, source: { fingerprint: "fpSampleCard" } };
    expect(instrument({ payment_method_details: bank })).toBe(instrument({}));
    expect(instrument(legacy)).toBe(instrument({}));
    expect(instrument({ payment_method_details: { type: "card", card: {} } })).toBeNull();
  });

  test("behavior: the mirror side of a destination charge names its transfer (B20)", () => {
    const [fact] = ofKind(
      read(charge({ id: "py_1", source_transfer: { id: "tr_1", object: "transfer" } })),
      "charge",
    );
    expect(fact).toMatchObject({ chargeId: "py_1", sourceTransfer: "tr_1" });
  });

  test.each(["absent", "empty", "present", "paged"])("behavior: refunds %s", (kind) => {
    const refunds = {
      absent: undefined,
      empty: { data: [], has_more: false },
      present: { data: [refund()], has_more: false },
      paged: { data: [refund()], has_more: true },
    }[kind];
    const reading = read(charge({ refunds, amount_refunded: 500 }));
    const expected = kind === "present" || kind === "paged" ? ["re_1"] : [];
    expect(ofKind(reading, "refund").map((fact) => fact.refundId)).toEqual(expected);
    expect(ofKind(reading, "charge")[0]?.amountRefunded).toBe(500n);
    expect(reading.refetch).toEqual([]);
  });

  test("error: a bad nested refund spoils neither the charge nor the others", () => {
    const data = [refund({ amount: -5, id: "re_bad" }), refund()];
    const reading = read(charge({ refunds: { data, has_more: false } }));
    expect(reading.facts.map((fact) => fact.kind)).toEqual(["charge", "refund"]);
    expect(reading.refetch.map((entry) => entry.id)).toEqual(["re_bad"]);
  });

  test.each([
    ["succeeded and not paid", charge({ paid: false }), undefined],
    ["a status nobody knows", charge({ status: "glowing" }), undefined],
    ["charge.failed with a succeeded charge", charge(), "charge.failed"],
  ])("error: %s is refetched", (_name, shape, eventType) => {
    const reading = read(shape, eventType === undefined ? {} : { eventType });
    expect(reading.facts).toEqual([]);
    expect(reading.refetch.map((entry) => entry.id)).toEqual(["ch_1"]);
  });
});

describe("refunds and disputes", () => {
  test.each([
    ["pending", 1],
    ["succeeded", 2],
    ["failed", 3],
    ["canceled", 3],
    ["brand_new", 0],
  ])("behavior: refund %s has rank %i", (status, rank) => {
    const [fact] = ofKind(read(refund({ status })), "refund");
    expect(fact).toMatchObject({ status, versionRank: rank, reason: "duplicate" });
  });

  test("behavior: a refund without a status says nothing about its success", () => {
    expect(ofKind(read(refund({ status: null })), "refund")[0]?.status).toBe("unknown");
  });

  test("error: refund.failed with a succeeded refund is fetched (B29 d)", () => {
    const reading = read(refund(), { eventType: "refund.failed" });
    expect(reading.facts).toEqual([]);
    expect(reading.refetch[0]?.id).toBe("re_1");
  });

  test.each([
    ["warning_needs_response", 1],
    ["needs_response", 2],
    ["lost", 3],
    ["appeal_under_review", 4],
  ])("behavior: dispute %s has rank %i", (status, rank) => {
    const [fact] = ofKind(read(dispute({ status })), "dispute");
    expect(fact).toMatchObject({ status, versionRank: rank, refundable: false });
  });

  test("behavior: refundability may be unsaid", () => {
    const [fact] = ofKind(read(dispute({ is_charge_refundable: undefined })), "dispute");
    expect(fact?.refundable).toBeNull();
  });
});

describe("amounts above 2^53 (B33)", () => {
  test("behavior: exact from raw JSON", () => {
    const text = JSON.stringify(charge({ amount: 1, description: "9007199254740993" }));
    const body = parseExactJson(text.replace('"amount":1,', '"amount":9007199254740993,'));
    expect(ofKind(read(body), "charge")[0]?.amount).toBe(9007199254740993n);
    expect(body).toMatchObject({ description: "9007199254740993" });
  });

  test("behavior: only integers that a number cannot hold become text", () => {
    expect(
      parseExactJson('[1234567890123456, 12345678901234567890, 1e20, "1\\"2345678901234567890"]'),
    ).toEqual([1234567890123456, "12345678901234567890", 1e20, '1"2345678901234567890']);
  });

  test("error: broken JSON stays broken", () => {
    expect(() => parseExactJson("[012345678901234567890]")).toThrow(SyntaxError);
  });
});

describe("versions", () => {
  test("behavior: a fetch is dated to the whole second, and no event type is believed", () => {
    const reading = readObject({
      object: charge(),
      scope: SCOPE,
      settings: SETTINGS,
      version: { at: new Date(at(10).getTime() + 700), source: "fetch" },
      eventType: "charge.failed",
    });
    expect(ofKind(reading, "charge")[0]?.versionAt).toEqual(at(10));
  });

  test("behavior: other kinds of objects are not read", () => {
    for (const object of [{ object: "payout", id: "po_1" }, null, 7, "text", []]) {
      expect(read(object)).toEqual({ facts: [], refetch: [] });
    }
  });
});

describe("public samples", () => {
  test.each([
    ["payment_intent.requires_action@2020-08-27.json", ["payment_intent", "charge"], []],
    ["payment_intent.processing@2018-02-28.json", ["payment_intent"], ["ch_11"]],
    ["payment_intent.amount_capturable_updated@2020-08-27.json", ["payment_intent", "charge"], []],
    ["charge.succeeded@2020-08-27.json", ["charge"], []],
    ["charge.refunded@2020-08-27.json", ["charge", "refund"], []],
    ["charge.dispute.created@2020-08-27.json", ["dispute"], []],
    ["charge.updated@2025-04-30.basil.json", ["charge"], []],
    ["account.application.deauthorized@2020-08-27.json", [], []],
    ["refund.failed@2020-03-02.json", [], ["re_23"]],
  ])("behavior: %s", (name, kinds, refetched) => {
    const { type, data } = sample(name);
    const reading = read(data.object, { eventType: String(type) });
    expect(reading.facts.map((fact) => fact.kind)).toEqual(kinds);
    expect(reading.refetch.map((entry) => entry.id)).toEqual(refetched);
    const stored = JSON.stringify(reading, (_key, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    for (const word of PERSONAL) expect(stored).not.toContain(word);
  });
});
