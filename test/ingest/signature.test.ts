/**
 * Goal: exactly the deliveries that Stripe signed a moment ago pass (case B18).
 * Method: headers made by the official SDK, and broken ones; the clock is a parameter.
 */
import Stripe from "stripe";
import { describe, expect, test } from "vitest";

import { checkSignature } from "../../src/ingest/signature.ts";
import type { SignatureVerdict } from "../../src/ingest/signature.ts";
import { at } from "../sources/stripe/shapes.ts";

const SECRET = "whsec_one";
const BODY = '{"id":"evt_1","note":"\u00e9\u0000"}';
const stripe = new Stripe("sk_test_signature");

function header(options: { secret?: string; second?: number; body?: string } = {}): string {
  return stripe.webhooks.generateTestHeaderString({
    payload: options.body ?? BODY,
    secret: options.secret ?? SECRET,
    timestamp: at(options.second ?? 0).getTime() / 1000,
  });
}

function check(signature: string | undefined, second = 10, secrets = [SECRET]): SignatureVerdict {
  return checkSignature({
    rawBody: Buffer.from(BODY),
    header: signature,
    secrets,
    receivedAt: at(second),
  });
}

test("default", () => {
  expect(check(header())).toEqual({ kind: "valid" });
});

describe("time, judged at the receipt", () => {
  test.each([
    [300, "valid"],
    [301, "stale"],
    [-300, "valid"],
    [-301, "future"],
  ])("behavior: %i s after the signature is %s", (offset, kind) => {
    const verdict = check(header(), offset);
    expect(verdict.kind).toBe(kind);
    if (verdict.kind === "stale" || verdict.kind === "future") {
      expect(verdict.offsetSeconds).toBe(offset);
    }
  });

  test("behavior: parts of a second do not matter", () => {
    const receivedAt = new Date(at(300).getTime() + 999);
    const input = { rawBody: Buffer.from(BODY), header: header(), secrets: [SECRET], receivedAt };
    expect(checkSignature(input).kind).toBe("valid");
  });

  test("behavior: a wrong signature is wrong, however old it is", () => {
    expect(check(header({ secret: "whsec_other" }), 5000)).toEqual({ kind: "no_match" });
  });
});

describe("secrets and signatures", () => {
  test("behavior: any configured secret may fit", () => {
    expect(check(header({ secret: "whsec_two" }), 10, [SECRET, "whsec_two"]).kind).toBe("valid");
  });

  test("behavior: any v1 of the header may fit", () => {
    const [time, signature] = header().split(",");
    const other = `v1=${"0".repeat(64)}`;
    expect(check(`${String(time)},${other},${String(signature)},v0=abc`).kind).toBe("valid");
  });

  test("error: v0 is a decoy", () => {
    expect(check(header().replace("v1=", "v0=")).kind).toBe("malformed");
  });

  test("error: one changed byte", () => {
    expect(check(header({ body: `${BODY} ` })).kind).toBe("no_match");
  });
});

describe("headers", () => {
  test.each([[undefined], [""], ["  "]])("error: %j is missing", (value) => {
    expect(check(value)).toEqual({ kind: "missing" });
  });

  test.each([
    ["nothing in it", "hello"],
    ["no time", `v1=${"a".repeat(64)}`],
    ["two times", `t=1,t=2,v1=${"a".repeat(64)}`],
    ["a time in words", `t=now,v1=${"a".repeat(64)}`],
    ["a negative time", `t=-5,v1=${"a".repeat(64)}`],
    ["a short signature", "t=1700000000,v1=abc"],
    ["no hex", `t=1700000000,v1=${"z".repeat(64)}`],
    ["thousands of signatures", `t=1700000000${`,v1=${"a".repeat(64)}`.repeat(1000)}`],
    ["many signatures", `t=1700000000${`,v1=${"a".repeat(64)}`.repeat(20)}`],
  ])("error: %s is malformed and says why", (_name, value) => {
    const verdict = check(value);
    expect(verdict.kind).toBe("malformed");
    if (verdict.kind === "malformed") expect(verdict.seen).not.toBe("");
  });
});
