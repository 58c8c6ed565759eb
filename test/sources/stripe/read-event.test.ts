/**
 * Goal: of an event only what may be stored is left, under the right scope, with its key.
 * Method: snapshot and thin events of every kind; personal data is planted everywhere.
 */
import { describe, expect, test } from "vitest";

import { readEvent } from "../../../src/sources/stripe/read-event.ts";
import type { ReadEvent } from "../../../src/sources/stripe/read-event.ts";
import { reviveReading, writeReading } from "../../../src/sources/stripe/reading-json.ts";
import {
  PERSONAL,
  SETTINGS,
  at,
  charge,
  dispute,
  event,
  ofKind,
  paid,
  read,
  refund,
  sample,
} from "./shapes.ts";
import type { Json } from "./shapes.ts";

function rowOf(raw: unknown, listedFor?: string | null): ReadEvent {
  const outcome = readEvent({
    event: raw,
    settings: SETTINGS,
    ...(listedFor === undefined ? {} : { listedFor }),
  });
  if (outcome.kind !== "event") throw new Error(`read as ${outcome.kind}`);
  return outcome.event;
}

function keysOf(raw: unknown): string[] {
  const row = rowOf(raw);
  const reading = reviveReading(JSON.parse(row.body ?? "{}"));
  return ofKind(reading, "key").map((fact) => fact.objectId);
}

const thin = (fields: Json = {}): Json => ({
  id: "evt_thin",
  object: "v2.core.event",
  type: "v1.payment_intent.succeeded",
  created: "2023-11-14T22:13:30.000Z",
  livemode: false,
  related_object: { id: "pi_1", type: "payment_intent", url: "/v1/payment_intents/pi_1" },
  reason: { type: "request", request: { id: "req_1", idempotency_key: "key-1" } },
  ...fields,
});

test("default", () => {
  const row = rowOf(event("payment_intent.succeeded", paid()));
  expect(row).toMatchObject({
    scope: "platform/test",
    eventId: "evt_1",
    type: "payment_intent.succeeded",
    apiVersion: "2026-10-28.endive",
    createdAt: at(10),
    objectId: "pi_1",
    objectType: "payment_intent",
    idempotencyKey: "key-1",
    requestId: "req_1",
    thin: false,
    hopeless: null,
  });
  const reading = reviveReading(JSON.parse(row.body ?? ""));
  expect(reading.facts.map((fact) => fact.kind)).toEqual(["payment_intent", "charge", "key"]);
});

test("behavior: a reading survives storage", () => {
  for (const shape of [paid(), charge({ refunds: { data: [refund()] } }), dispute(), refund()]) {
    const reading = read(shape);
    expect(reviveReading(JSON.parse(writeReading(reading)))).toEqual(reading);
  }
});

describe("accounts and modes", () => {
  test("behavior: a listed connected account has a scope of its own (B20)", () => {
    expect(rowOf(event("charge.succeeded", charge(), { account: "acct_c" })).scope).toBe(
      "acct_c/test",
    );
    expect(rowOf(thin({ context: "org_1/acct_c" })).scope).toBe("acct_c/test");
    expect(rowOf(event("charge.succeeded", charge()), "acct_c").scope).toBe("acct_c/test");
  });

  test("behavior: other accounts and the other mode are told apart", () => {
    const foreign = event("charge.succeeded", charge(), { account: "acct_x" });
    const live = event("charge.succeeded", charge(), { livemode: true });
    expect(readEvent({ event: foreign, settings: SETTINGS })).toEqual({
      kind: "foreign_account",
      account: "acct_x",
    });
    expect(readEvent({ event: live, settings: SETTINGS }).kind).toBe("other_mode");
  });
});

describe("keys", () => {
  test("behavior: a charge's key is its payment intent's too", () => {
    expect(keysOf(event("charge.succeeded", charge()))).toEqual(["ch_1", "pi_1"]);
    expect(keysOf(event("payment_intent.created", paid()))).toEqual(["pi_1"]);
    expect(keysOf(event("refund.created", refund()))).toEqual(["re_1"]);
  });

  test("behavior: the SDK's own keys are kept", () => {
    const request = { id: "req_1", idempotency_key: "stripe-node-retry-954f" };
    expect(rowOf(event("charge.succeeded", charge(), { request })).idempotencyKey).toBe(
      "stripe-node-retry-954f",
    );
  });

  test("behavior: the key of a refund, an edit or a cancel is none of the charge's", () => {
    expect(keysOf(event("charge.refunded", charge({ amount_refunded: 500 })))).toEqual([]);
    expect(keysOf(event("charge.updated", charge()))).toEqual([]);
  });

  test.each([
    ["null", null],
    ["an id alone, as before 2017-05-23", "req_1"],
    ["without a key", { id: "req_1", idempotency_key: null }],
    ["of another shape", { id: 7 }],
  ])("behavior: request %s gives no key", (_name, request) => {
    expect(keysOf(event("charge.succeeded", charge(), { request }))).toEqual([]);
  });
});

describe("thin events", () => {
  test("behavior: stored under its twin's id, and its object is fetched", () => {
    const row = rowOf(thin({ snapshot_event: "evt_1" }));
    expect(row).toMatchObject({
      eventId: "evt_1",
      thin: true,
      objectId: "pi_1",
      createdAt: at(10),
      idempotencyKey: "key-1",
    });
    expect(reviveReading(JSON.parse(row.body ?? "")).refetch).toEqual([
      { id: "pi_1", reason: "thin event: the object is only named" },
    ]);
  });

  test("behavior: without a twin its own id; without a readable object no body", () => {
    expect(rowOf(thin()).eventId).toBe("evt_thin");
    expect(rowOf(thin({ related_object: null })).body).toBeNull();
    expect(rowOf(thin({ related_object: { id: "po_1", type: "payout" } })).body).toBeNull();
  });
});

describe("shapes", () => {
  test.each(["2031-01-01.x", null, undefined])(
    "behavior: api_version %s is read when the shape fits (B22)",
    (version) => {
      const row = rowOf(event("charge.succeeded", charge(), { api_version: version }));
      expect(row.apiVersion).toBe(version ?? null);
      expect(reviveReading(JSON.parse(row.body ?? "")).facts[0]?.kind).toBe("charge");
    },
  );

  test("behavior: a shape that does not fit is fetched", () => {
    const row = rowOf(event("charge.succeeded", charge({ amount: { value: 2000 } })));
    const reading = reviveReading(JSON.parse(row.body ?? ""));
    expect(ofKind(reading, "charge")).toEqual([]);
    expect(reading.refetch[0]?.id).toBe("ch_1");
  });

  test("error: what cannot even be fetched is hopeless and says so", () => {
    const row = rowOf(event("charge.succeeded", charge({ id: 7 })));
    expect(row.body).toBeNull();
    expect(row.hopeless).toMatch(/unknown shape/);
  });

  test.each([
    ["a list", []],
    ["an object of Stripe's", charge()],
    ["no id", event("charge.succeeded", charge(), { id: "" })],
    ["a creation time in words", event("charge.succeeded", charge(), { created: "now" })],
    ["no data", event("charge.succeeded", charge(), { data: null })],
    ["null", null],
  ])("error: %s is no event", (_name, raw) => {
    const outcome = readEvent({ event: raw, settings: SETTINGS });
    expect(outcome.kind).toBe("not_an_event");
    if (outcome.kind === "not_an_event") expect(outcome.seen).not.toBe("");
  });
});

describe("marks", () => {
  const marksOf = (metadata: unknown, owned: Record<string, string> | null): unknown => {
    const settings = { ...SETTINGS, owned: owned === null ? null : { metadata: owned } };
    const outcome = readEvent({ event: event("charge.succeeded", charge({ metadata })), settings });
    if (outcome.kind !== "event") return outcome.kind;
    const [fact] = ofKind(reviveReading(JSON.parse(outcome.event.body ?? "")), "charge");
    return [fact?.intentMark, fact?.reference, fact?.keyMark, fact?.owned];
  };

  test("behavior: the configured keys and nothing else", () => {
    const metadata = { intent_id: "i-1", order: "o-1", idem: "k-1", email: "pat@example.org" };
    expect(marksOf(metadata, null)).toEqual(["i-1", "o-1", "k-1", "yes"]);
  });

  test.each([
    [{ app: "shop", team: "a" }, "yes"],
    [{ app: "shop" }, "no"],
    [{ other: "x" }, "no"],
    [{}, "unknown"],
    [null, "unknown"],
    [{ constructor: "x" }, "no"],
  ])("behavior: owned of %j is %s", (metadata, owned) => {
    expect(marksOf(metadata, { app: "shop", team: "a" })).toEqual([null, null, null, owned]);
  });

  test("behavior: NUL bytes and broken surrogates are storable, long marks are none", () => {
    const metadata = { intent_id: "i\u0000-1", order: "o\ud800", idem: "k".repeat(601) };
    expect(marksOf(metadata, null)).toEqual(["i-1", "o\ufffd", null, "yes"]);
  });
});

test("behavior: personal data is in no row, wherever it was planted", () => {
  const nest = (value: unknown): Json => ({
    ...(value as Json),
    email: "pat@example.org",
    name: "Pat Sample",
    metadata: { note: "Pat Sample", email: "pat@example.org" },
    customer: { id: "cus_1", email: "pat@example.org", name: "Pat Sample" },
    unheard_of: { deep: [{ email: "pat@example.org", number: "4242", secret: "x_secret_y" }] },
  });
  const shapes = [nest(paid({ latest_charge: nest(charge()) })), nest(charge()), nest(refund())];
  const rows = [
    ...shapes.map((shape) => rowOf(nest(event("charge.succeeded", shape)))),
    rowOf(nest(thin())),
    ...[
      "payment_intent.requires_action@2020-08-27.json",
      "charge.refunded@2020-08-27.json",
      "charge.dispute.created@2020-08-27.json",
    ].map((name) => rowOf(sample(name))),
  ];
  expect(rows).toHaveLength(7);
  for (const word of PERSONAL) expect(JSON.stringify(rows)).not.toContain(word);
});
