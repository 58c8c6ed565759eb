// Goal: one request has one name, on every machine and in both languages; headers are read well.
// Method: vectors made with Python's json.dumps and hashlib; headers by hand.
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";

import { describe, expect, test } from "vitest";

import { canonicalJson, deterministicPaymentId } from "../../src/gateway/gateway.ts";
import { readKey } from "../../src/gateway/key.ts";
import { endingOfKeyed, endingOfPayment } from "../../src/gateway/outcome.ts";
import { readPayment } from "../../src/gateway/payment.ts";
import type { GatewayRequest } from "../../src/gateway/request.ts";

const LIMITS = { headerBytesMax: 4_096, requestBytesMax: 1_000 };
const ID = "pay_0123456789abcdef";

function request(headers: Record<string, string>, body?: unknown): GatewayRequest {
  const made = new IncomingMessage(new Socket());
  return Object.assign(made, { method: "POST", url: "/goods?n=1", headers, body });
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64");
}

const AUTHORIZATION = { from: "0xAB", to: "0xCD", value: "5", nonce: "0x01" };

function payload(
  over: { readonly id?: unknown; readonly nonce?: string; readonly v?: number } = {},
) {
  const info = { required: false, ...("id" in over ? { id: over.id } : {}) };
  return {
    x402Version: over.v ?? 2,
    extensions: { "payment-identifier": { info } },
    payload: {
      signature: "0x5",
      authorization: { ...AUTHORIZATION, nonce: over.nonce ?? AUTHORIZATION.nonce },
    },
  };
}

function paid(
  value: unknown,
  options: { readonly requireId?: boolean; readonly body?: unknown } = {},
) {
  return readPayment(
    request({}, options.body),
    typeof value === "string" ? value : encoded(value),
    {
      ...LIMITS,
      scope: "s",
      requireId: options.requireId ?? false,
    },
  );
}

describe("deterministicPaymentId", () => {
  test("default", () => {
    const body = { q: 'häuser 😀 "x"', n: 3, deep: { b: [1, 2.5, 0.00001, null, true], a: -7 } };
    expect(deterministicPaymentId({ endpoint: "/v1/search", method: "POST", body })).toBe(
      "390f48beed5cabb2835cfefce175e34b",
    );
    const turned = { n: 3, deep: { a: -7, b: [1, 2.5, 0.00001, null, true] }, q: body.q };
    expect(deterministicPaymentId({ endpoint: "/v1/search", method: "post", body: turned })).toBe(
      "390f48beed5cabb2835cfefce175e34b",
    );
  });
  test("behavior: no body is null", () => {
    const content = { endpoint: "/v1/search", method: "GET" };
    expect(deterministicPaymentId({ ...content, body: null })).toBe(
      "f83ca9002a79660c81df0601a5ca93d2",
    );
    expect(deterministicPaymentId({ ...content, body: undefined })).toBe(
      "f83ca9002a79660c81df0601a5ca93d2",
    );
  });
  test("behavior: keys are sorted by code point, texts are ASCII", () => {
    const value = { "\u{1F600}": 2, "\uffee": 1, c: "\u007f\u2028", b: 123_456_789_012, a: 1e-7 };
    expect(canonicalJson(value)).toBe(
      String.raw`{"a": 1e-07, "b": 123456789012, "c": "\u007f\u2028", "\uffee": 1, "\ud83d\ude00": 2}`,
    );
  });
  test("error: nesting without end is refused", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 70; level += 1) deep = [deep];
    expect(() => canonicalJson(deep)).toThrow("deeper than 64");
  });
});

describe("readPayment", () => {
  test("default", () => {
    const read = paid(payload({ id: ID }));
    expect(read).toMatchObject({ value: { scope: "s", principal: "0xab", id: ID } });
    expect(paid(payload({ id: ID }))).toEqual(read);
  });
  test("behavior: another nonce, body or version is another payment", () => {
    const prints = [
      paid(payload({ id: ID })),
      paid(payload({ id: ID, nonce: "0x02" })),
      paid(payload({ id: ID }), { body: { a: 1 } }),
      paid(payload({ id: ID }), { body: Buffer.from("a") }),
      paid(payload({ id: ID, v: 1 })),
    ].map((read) => ("value" in read ? read.value.fingerprint : read.fault));
    expect(new Set(prints).size).toBe(5);
  });
  test("behavior: without an identifier it is known by payer and nonce, however it is wrapped", () => {
    const [one, two] = [paid(payload()), paid(payload({ v: 1 }))].map((read) =>
      "value" in read ? read.value : null,
    );
    expect(one?.id).toBe(`authorization:${String(one?.authHash)}`);
    expect(two?.authHash).toBe(one?.authHash);
    const svm = paid({ payload: { transaction: "AAAA" } });
    expect(svm).toMatchObject({ value: { principal: "" } });
  });
  test.each([
    ["payment_malformed", "%%%"],
    ["payment_malformed", encoded([1])],
    ["payment_malformed", encoded({ payload: 1 })],
    [
      "payment_malformed",
      encoded({ payload: { authorization: AUTHORIZATION, permit2Authorization: AUTHORIZATION } }),
    ],
    ["payment_id_invalid", encoded(payload({ id: "short" }))],
    ["payment_id_invalid", encoded(payload({ id: 7 }))],
    ["payment_id_invalid", encoded(payload({ id: `${ID} ${ID}` }))],
    ["header_too_large", "a".repeat(5_000)],
  ])("error: %s", (fault, header) => {
    expect(paid(header)).toEqual({ fault });
  });
  test("error: an identifier that is required and missing", () => {
    expect(paid(payload(), { requireId: true })).toEqual({ fault: "payment_id_missing" });
  });
  test("error: a body that is too large, or that nobody parsed", () => {
    expect(paid(payload(), { body: "x".repeat(1_001) })).toEqual({ fault: "body_too_large" });
    const unread = readPayment(request({ "content-length": "3" }), encoded(payload()), {
      ...LIMITS,
      ...{ scope: "s", requireId: false },
    });
    expect(unread).toEqual({ fault: "body_unreadable" });
  });
});

describe("readKey", () => {
  const read = (header?: string, required = true) =>
    readKey(request(header === undefined ? {} : { "idempotency-key": header }), {
      ...LIMITS,
      ...{ scope: "s", principal: "p", required },
    });
  test.each([
    ['"8e03978e-40d5"', "8e03978e-40d5"],
    ["8e03978e-40d5", "8e03978e-40d5"],
    ['"a \\"b\\" \\\\"', 'a "b" \\'],
    [`"${"k".repeat(255)}"`, "k".repeat(255)],
  ])("default: %s", (header, id) => {
    expect(read(header)).toMatchObject({ value: { id, scope: "s", principal: "p" } });
  });
  test.each(['""', '"open', 'a"b', '"ä"', `"${"k".repeat(256)}"`, "a, b", '"a";p=1', "  "])(
    "error: %s",
    (header) => {
      expect(read(header)).toEqual({ fault: "key_invalid" });
    },
  );
  test("error: missing", () => {
    expect(read()).toEqual({ fault: "key_missing" });
    expect(read(undefined, false)).toEqual({ value: null });
  });
});

describe("endings", () => {
  const success = encoded({ success: true, transaction: "0x1" });
  const failure = encoded({ success: false, transaction: "" });
  test.each([
    ["keep", 200, { "payment-response": success }],
    ["keep", 200, {}],
    ["keep", 500, {}],
    ["keep", 404, { "payment-response": failure }],
    ["keep", 500, { "payment-response": success }],
    ["nothing", 402, { "payment-required": "…" }],
    ["nothing", 412, { "payment-required": "…" }],
    ["nothing", 429, {}],
    ["unknown", 402, {}],
    ["unknown", 402, { "payment-response": failure }],
    ["unknown", 402, { "payment-response": failure, "payment-required": "…" }],
    ["unknown", 402, { "payment-response": "%%" }],
    ["unknown", 502, {}],
  ] as const)("behavior: %s of %i %o", (ending, status, headers) => {
    expect(endingOfPayment({ status, headers: { ...headers } })).toBe(ending);
  });
  test("behavior: of keyed requests only a rate limit leaves no trace", () => {
    expect([200, 402, 429, 500].map((status) => endingOfKeyed({ status }))).toEqual([
      ...["keep", "keep", "nothing", "keep"],
    ]);
  });
});
